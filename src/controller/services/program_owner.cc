#include "controller/services/program_owner.h"

namespace carve::controller {
namespace {

ProgramOwner owner_of(const Object& object) {
  return {.kind = std::string(objects::text_of(object.key.kind).kind),
          .name_space = object.key.namespace_,
          .name = object.key.name,
          .account = object.account,
          .owner_uid = object.owner_uid,
          .uid = object.uid};
}

}  // namespace

ProgramOwner owner_of(const Object& object, const ReplicaRecord& replica, std::string spec) {
  ProgramOwner out = owner_of(object);
  out.request_id = replica.request_id;
  out.node = replica.node;
  out.index = replica.replica;
  out.revision = replica.revision;
  out.spec = std::move(spec);
  out.port = replica.port;
  return out;
}

ProgramOwner owner_of(const Object& object, const PodRecord& pod) {
  ProgramOwner out = owner_of(object);
  out.request_id = pod.request_id;
  out.node = pod.node;
  out.index = pod.index;
  out.role = pod.role;
  return out;
}

bool is_owned_by(const ProgramOwner& owner, const Object& object) {
  return owner.kind == objects::text_of(object.key.kind).kind && owner.name_space == object.key.namespace_ &&
         owner.name == object.key.name && owner.account == object.account &&
         owner.owner_uid == object.owner_uid;
}

}  // namespace carve::controller
