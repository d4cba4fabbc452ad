// The symbol that libberth looks for, and digests by OpenSSL's libcrypto.

#include <fmt/format.h>
#include <openssl/evp.h>

#include "berth/device/build_id.h"
#include "berth/errors.h"
#include "fetch/transfer.h"
#include "io/network.h"

namespace berth::fetch {

namespace {

struct Free {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class LibraryNetwork final : public io::Network {
 public:
  io::TryResult transfer(io::Receiver& to,
                         Clock::time_point deadline) override {
    return fetch::transfer(to, deadline);
  }

  std::string digest(const char* algorithm, io::ByteSource& source) override {
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    const EVP_MD* kind = EVP_get_digestbyname(algorithm);
    bool ok = context != nullptr && kind != nullptr &&
              EVP_DigestInit_ex(context.get(), kind, nullptr) == 1;
    for (auto next = source.peek(); ok && !next.empty(); next = source.peek()) {
      ok = EVP_DigestUpdate(context.get(), next.data(), next.size()) == 1;
      source.skip(next.size());
    }
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!ok || EVP_DigestFinal_ex(context.get(), digest, &size) != 1) {
      throw errors::Internal(fmt::format(
          "OpenSSL offers no {}; check its configuration (OPENSSL_CONF)",
          algorithm));
    }
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += fmt::format("{:02x}", digest[i]);
    }
    return text;
  }
};

}  // namespace

io::Network* make_network() {
  return std::make_unique<LibraryNetwork>().release();
}

}  // namespace berth::fetch

extern "C" {
__attribute__((visibility(
    "default"))) extern const berth::io::FetchPlugin berth_fetch_plugin;
const berth::io::FetchPlugin berth_fetch_plugin = {BERTH_BUILD_ID,
                                                   berth::fetch::make_network};
}
