// Until the plug-in that joins clusters is merged: its definition replaces this
// weak one, and this file goes.

#include "cluster/member.h"

namespace berth::cluster {

[[gnu::weak]] std::shared_ptr<Member> Member::join(const ClusterResolver&,
                                                   JoinOptions, Site) {
  throw errors::Unimplemented("this build joins no clusters");
}

}  // namespace berth::cluster
