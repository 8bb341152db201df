#include "kubernetes/cli/pod_documents.h"

#include <algorithm>
#include <utility>

#include "kubernetes/format/json_pointer.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr unsigned max_list_levels = 8;
constexpr std::string_view kinds_with_template[] = {"Deployment", "StatefulSet",           "DaemonSet",
                                                    "ReplicaSet", "ReplicationController", "Job"};

// Returns the number of pods at the pointer. The default is 1, as in Kubernetes.
unsigned replicas_at(const Json& object, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!object.contains(at) || !object.at(at).is_number_unsigned()) return 1;
  return static_cast<unsigned>(std::min<uint64_t>(object.at(at).get<uint64_t>(), UINT32_MAX));
}

void collect(Json& document, unsigned level, std::vector<PodDocument>& out) {
  if (!document.is_object() || level > max_list_levels) return;
  const std::string kind = text_at(document, "/kind");
  if (kind.ends_with("List")) {
    if (document.contains("items") && document["items"].is_array())
      for (Json& item : document["items"]) collect(item, level + 1, out);
    return;
  }
  const bool has_template = std::ranges::find(kinds_with_template, kind) != std::end(kinds_with_template);
  const char* const pointer = kind == "Pod"       ? ""
                              : has_template      ? "/spec/template"
                              : kind == "CronJob" ? "/spec/jobTemplate/spec/template"
                                                  : nullptr;
  if (pointer == nullptr) return;
  const Json::json_pointer at(pointer);
  if (document.contains(at) && document.at(at).is_object())
    out.push_back({.name = text_at(document, "/metadata/name"),
                   .replicas = replicas_at(document, kind == "Job" ? "/spec/parallelism" : "/spec/replicas"),
                   .pod = &document.at(at)});
}

}  // namespace

std::vector<PodDocument> pods_in(Json& document) {
  std::vector<PodDocument> out;
  collect(document, 0, out);
  return out;
}

}  // namespace carve::kubernetes::cli
