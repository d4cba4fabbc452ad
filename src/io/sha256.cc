#include "io/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "berth/errors.h"
#include "io/byte_source.h"

namespace berth::io {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (!state_->context ||
      EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1) {
    throw errors::Internal(
        "OpenSSL offers no SHA-256; check its configuration (OPENSSL_CONF)");
  }
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) !=
      1) {
    throw errors::Internal("OpenSSL failed to continue a SHA-256");
  }
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest, &size) != 1) {
    throw errors::Internal("OpenSSL failed to finish a SHA-256");
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

std::string sha256_of_file(const std::string& path) {
  const auto source = file_source(path);
  Sha256 hash;
  for (auto next = source->peek(); !next.empty(); next = source->peek()) {
    hash.add(next);
    source->skip(next.size());
  }
  return hash.hex();
}

std::string md5_of_file(const std::string& path) {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  const auto source = file_source(path);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  bool ok = context != nullptr &&
            EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) == 1;
  for (auto next = source->peek(); ok && !next.empty(); next = source->peek()) {
    ok = EVP_DigestUpdate(context.get(), next.data(), next.size()) == 1;
    source->skip(next.size());
  }
  if (!ok || EVP_DigestFinal_ex(context.get(), digest, &size) != 1) {
    throw errors::Internal("OpenSSL offers no MD5; check its configuration");
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

}  // namespace berth::io
