#include "dialects/pod/admission.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dialects/pod/dialects.h"
#include "dialects/pod/guards.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/limit_defaults.h"
#include "dialects/pod/pod_json.h"
#include "dialects/pod/pod_requests.h"
#include "dialects/pod/unknown_requests.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/quantity.h"
#include "objects/rules/service_terms.h"

namespace carve::dialects {
namespace {

using api::Json;

constexpr const char* slices_annotation = "carve.dev/slices";
constexpr const char* sliced_label = "carve.dev/sliced";
constexpr const char* node_label = "carve.dev/node";
constexpr const char* extender_node = "extender";
constexpr const char* mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::string_view hami_prefix = "hami.io/";
constexpr std::string_view nvidia_prefix = "nvidia.com/";

// Variables of ACK's cGPU and of HAMi that lift limits or choose how compute is limited.
constexpr std::string_view foreign_variables[] = {"CGPU_DISABLE", "CUDA_DISABLE_CONTROL",
                                                  "CUDA_TASK_PRIORITY", "GPU_CORE_UTILIZATION_POLICY"};

// A container that runs permanently: one of spec.containers, or an init container that always restarts (a
// sidecar). `list` and `position` locate its limits.
struct RunningContainer {
  const char* list = "containers";
  size_t position = 0;
  std::string name;
};

// Removes the member, and also the object around it if that becomes empty.
void remove(Json& of, const char* object, const char* key) {
  Json* const around = member(of, object);
  if (around == nullptr || !around->is_object()) return;
  around->erase(key);
  if (around->empty()) of.erase(object);
}

Json& entered(Json& of, const char* key) {
  Json& out = of[key];
  if (!out.is_object()) out = Json::object();
  return out;
}

void remove_own_marks(Json& pod) {
  Json* const metadata = member(pod, "metadata");
  if (metadata == nullptr) return;
  remove(*metadata, "annotations", kubernetes::request_annotation);
  remove(*metadata, "annotations", slices_annotation);
  remove(*metadata, "labels", sliced_label);
}

bool is_sidecar(const Json& init_container) {
  return text_member(init_container, "restartPolicy") == "Always";
}

bool has_key_of_ours(const Json& container) {
  const Json* const resources = member(container, "resources");
  const Json* const limits = resources == nullptr ? nullptr : member(*resources, "limits");
  if (limits == nullptr || !limits->is_object()) return false;
  for (const DialectRow& row : dialect_rows())
    if (row.dialect != Dialect::nvidia)
      for (const char* key : row.limits)
        if (limits->contains(key)) return true;
  return false;
}

class Admission {
 public:
  Admission(Json pod, const PodSettings& settings)
      : given_(std::move(pod)),
        pod_(given_),
        settings_(settings),
        defaulted_(defaulted_limits(given_)),
        warnings_(remove_defaults(pod_, defaulted_)),
        source_(pod_),
        reader_(source_, errors_) {}

  Result<AdmittedPod, api::FieldErrors> run() {
    read();
    refuse_unknown_gpu_requests(source_, "", requests_.dialect.has_value(), settings_, errors_);
    if (requests_.dialect) {
      check_names();
      check_guards(spec(), settings_, errors_);
    }
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    if (requests_.containers.empty())
      return AdmittedPod{.pod = std::move(pod_), .is_sliced = false, .warnings = {}};
    write();
    return AdmittedPod{.pod = std::move(pod_), .is_sliced = true, .warnings = std::move(warnings_)};
  }

 private:
  Json& spec() { return pod_["spec"]; }

  void read() {
    const JsonMember root = reader_.root();
    const JsonMember metadata = reader_.object(root, "metadata"), spec = reader_.object(root, "spec");
    const JsonMember containers = reader_.list(spec, "containers");
    const JsonMember sidecars = reader_.list(spec, "initContainers");
    const PodParts parts{.labels = reader_.object(metadata, "labels"),
                         .annotations = reader_.object(metadata, "annotations"),
                         .containers = containers ? containers.value->size() : 0};
    for (size_t i = 0; i < parts.containers; ++i)
      read_container(parts, reader_.item(containers, i), "containers", i);
    for (size_t i = 0; sidecars && i < sidecars.value->size(); ++i) {
      const JsonMember item = reader_.item(sidecars, i);
      if (!item) continue;
      if (is_sidecar(*item.value)) {
        read_container(parts, item, "initContainers", i);
      } else if (has_key_of_ours(*item.value)) {
        sharing_.push_back({"initContainers", i, text_member(*item.value, "name")});
      }
    }
    for (const RunningContainer& init : sharing_)
      read_sharing(parts, reader_.item(sidecars, init.position), init);
    if (parts.annotations && !requests_.containers.empty())
      for (const auto& [key, value] : parts.annotations.value->items())
        if (is_without_effect(key))
          warnings_.push_back(fmt::format("{} has no effect here", key.substr(0, 80)));
    if (!requests_.containers.empty()) warn_of_variables();
  }

  bool is_without_effect(const std::string& annotation) const {
    const auto known = {keys::hami_strategy, keys::hami_use_type, keys::hami_no_type,
                        keys::hami_use_uuid, keys::hami_no_uuid,  keys::hami_mode};
    const bool is_theirs = annotation.starts_with(hami_prefix) ||
                           (requests_.dialect == Dialect::hami && annotation.starts_with(nvidia_prefix));
    return is_theirs && std::ranges::find(known, annotation) == known.end();
  }

  // Adds warnings about environment variables that lift or change a limit in the products that read them.
  void warn_of_variables() {
    for (const RunningContainer& container : running_) {
      const Json& json = source_["spec"][container.list][container.position];
      const Json* const variables = member(json, "env");
      if (variables == nullptr || !variables->is_array()) continue;
      for (const Json& variable : *variables)
        if (const std::string name = text_member(variable, "name");
            std::ranges::find(foreign_variables, name) != std::end(foreign_variables))
          warnings_.push_back(fmt::format("container {}: env {} has no effect here", container.name, name));
    }
  }

  // kubelet gives the devices of an init container to the first container that requests devices, so both have
  // one slot. In kubelet's order, sidecars come before containers, so the slot would go to a sidecar with a
  // request.
  void read_sharing(const PodParts& pod, const JsonMember& item, const RunningContainer& init) {
    const auto refuse = [&](const std::string& message) {
      errors_.add(fmt::format("init container {}", init.name), init.name, "{}", message);
    };
    if (!settings_.init_containers_share)
      return refuse(
          "cannot have a slice, because a kubelet restart may then kill the pod; request it in a regular "
          "container");
    if (requests_.containers.empty())
      return refuse("no regular container has a slice to share; request one in a regular container");
    if (std::string_view(running_[requests_.containers.rbegin()->first].list) == init.list)
      return refuse(
          "a sidecar of the pod also requests a slice; request one in only one of these two containers");
    const auto& [index, wanted] = *requests_.containers.begin();
    const JsonMember resources = reader_.object(item, "resources");
    const ContainerParts parts{.name = init.name,
                               .index = index,
                               .limits = reader_.object(resources, "limits"),
                               .requests = reader_.object(resources, "requests")};
    PodRequests own{.dialect = requests_.dialect, .containers = {}};
    ContainerReader reader(reader_, errors_, settings_, pod, parts);
    read_container_request(reader, own);
    if (const auto asked = own.containers.find(index);
        asked != own.containers.end() && asked->second != wanted)
      refuse(fmt::format("shares the slice of container {} and must request the same amounts",
                         running_[index].name));
  }

  // Checks the names, because the annotation refers to containers by name. The API server also requires
  // unique names, but checks them only after the webhooks.
  void check_names() {
    std::set<std::string> names;
    for (const char* list : {"containers", "initContainers"}) {
      const Json* const containers = member(source_["spec"], list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (size_t i = 0; i < containers->size(); ++i) {
        const std::string name = text_member((*containers)[i], "name");
        const std::string field = fmt::format("spec.{}[{}].name", list, i);
        if (name.empty()) {
          errors_.add(field, name, "is required for a container of a pod with slices");
        } else if (!names.insert(name).second) {
          errors_.add(field, name, "must be unique in the pod");
        }
      }
    }
  }

  void read_container(const PodParts& pod, const JsonMember& container, const char* list, size_t position) {
    if (!container) return;
    const JsonMember resources = reader_.object(container, "resources");
    const ContainerParts parts{.name = text_member(*container.value, "name"),
                               .index = running_.size(),
                               .limits = reader_.object(resources, "limits"),
                               .requests = reader_.object(resources, "requests")};
    running_.push_back({list, position, parts.name});
    ContainerReader reader(reader_, errors_, settings_, pod, parts);
    read_container_request(reader, requests_);
    if (parts.requests)
      if (const Json* const cpu = member(*parts.requests.value, "cpu"))
        if (const auto milli = objects::parse_cores(quantity_text(*cpu))) cpu_milli_ += *milli;
  }

  void write() {
    kubernetes::PodRequest request{.dialect = std::string(text(*requests_.dialect)), .cpu = cpu_milli_};
    for (const auto& [index, asked] : requests_.containers) {
      const RunningContainer& container = running_[index];
      Json& json = spec()[container.list][container.position];
      request.given[container.name] = take_given(json);
      request.containers[container.name] = requested_slice(asked);
      write_limits(json["resources"]["limits"], asked);
    }
    for (const RunningContainer& init : sharing_) {
      Json& json = spec()[init.list][init.position];
      request.given[init.name] = take_given(json);
      write_limits(json["resources"]["limits"], requests_.containers.begin()->second);
    }
    restore_defaults(pod_, given_, defaulted_);
    request.priority = priority();
    request.application = controller_uid();
    Json& metadata = entered(pod_, "metadata");
    entered(metadata, "annotations")[kubernetes::request_annotation] = api::write(request);
    entered(metadata, "labels")[sliced_label] = "true";
    const std::string scheduler = text_member(spec(), "schedulerName");
    if (scheduler.empty() || scheduler == default_scheduler)
      spec()["schedulerName"] = settings_.schedulers.front();
    entered(spec(), "nodeSelector")[node_label] = extender_node;
    tolerate();
  }

  // Removes the limits of the dialect and returns their original values. Also removes requests of slots.
  static std::map<std::string, std::string> take_given(Json& container) {
    std::map<std::string, std::string> out;
    Json& resources = container["resources"];
    for (const DialectRow& row : dialect_rows())
      for (const char* key : row.limits) {
        if (const Json* const value = member(resources["limits"], key)) out[key] = quantity_text(*value);
        resources["limits"].erase(key);
        remove(resources, "requests", key);
      }
    remove(resources, "requests", keys::slot);  // The request of an extended resource must equal its limit.
    return out;
  }

  uint64_t unit_bytes() const { return size_of(settings_.unit.value_or(MemoryUnit::gib)).count; }

  kubernetes::RequestedSlice requested_slice(const Amounts& asked) const {
    kubernetes::RequestedSlice out{.amounts = asked, .unit = {}, .units = {}};
    if (asked.memory_units) {
      out.unit = unit_bytes();
      out.units = *asked.memory_units * asked.devices;
      out.amounts.memory_bytes = *asked.memory_units * unit_bytes();
      out.amounts.memory_units.reset();
    }
    for (Part& part : out.amounts.parts)
      if (const auto units = std::exchange(part.memory_units, std::nullopt))
        part.memory_bytes = *units * unit_bytes();
    return out;
  }

  // An amount that depends on the device, such as a part of its memory, is not counted by the scheduler and
  // quotas.
  void write_limits(Json& limits, const Amounts& asked) const {
    if (const auto bytes = kubernetes::total_memory(requested_slice(asked).amounts))
      limits[keys::memory] = kubernetes::quantity_of_bytes(*bytes);
    const uint64_t percent =
        asked.exclusive ? uint64_t{100} * asked.devices : kubernetes::total_share(asked) / 100;
    if (percent != 0) limits[keys::compute] = fmt::format("{}", percent);
    limits[keys::slot] = "1";
  }

  // The API server resolves the pod's priority class before it calls webhooks.
  std::optional<int32_t> priority() const {
    const Json* const value = member(source_["spec"], "priority");
    if (value == nullptr || !value->is_number_integer()) return std::nullopt;
    const auto out = value->get<int64_t>();
    return out >= INT32_MIN && out <= INT32_MAX ? std::optional(static_cast<int32_t>(out)) : std::nullopt;
  }

  std::optional<std::string> controller_uid() const {
    const Json* const metadata = member(pod_, "metadata");
    const Json* const owners = metadata == nullptr ? nullptr : member(*metadata, "ownerReferences");
    if (owners == nullptr || !owners->is_array()) return std::nullopt;
    for (const Json& owner : *owners) {
      const Json* const is_controller = member(owner, "controller");
      if (is_controller == nullptr || *is_controller != true) continue;
      const std::string uid = text_member(owner, "uid");
      return uid.empty() ? std::nullopt : std::optional(uid);
    }
    return std::nullopt;
  }

  void tolerate() {
    Json& tolerations = spec()["tolerations"];
    if (!tolerations.is_array()) tolerations = Json::array();
    const Json wanted{{"key", keys::taint}, {"operator", "Exists"}, {"effect", "NoSchedule"}};
    if (std::ranges::find(tolerations, wanted) == tolerations.end()) tolerations.push_back(wanted);
  }

  const Json given_;
  Json pod_;
  const PodSettings& settings_;
  const std::vector<DefaultedLimit> defaulted_;
  std::vector<std::string> warnings_;
  const Json source_;  // The original, which is read while pod_ changes.
  objects::ErrorList errors_;
  JsonReader reader_;
  PodRequests requests_;
  std::vector<RunningContainer> running_;
  std::vector<RunningContainer> sharing_;  // Init containers that share the first requested slice.
  uint64_t cpu_milli_ = 0;
};

api::FieldErrors one_error(std::string field, std::string message) {
  return {{.field = std::move(field), .value = "", .message = std::move(message)}};
}

// Returns the pod before its admission, reconstructed from its annotation, or no value if it has no readable
// one.
std::optional<Json> before_admission(const Json& pod) {
  const Json* const metadata = member(pod, "metadata");
  const Json* const annotations = metadata == nullptr ? nullptr : member(*metadata, "annotations");
  if (annotations == nullptr) return std::nullopt;
  const auto request = kubernetes::read_request(text_member(*annotations, kubernetes::request_annotation));
  if (!request) return std::nullopt;
  Json out = pod;
  const std::vector<DefaultedLimit> defaulted = defaulted_limits(pod);
  for (const char* list : {"containers", "initContainers"}) {
    Json* const containers = member(out["spec"], list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers) {
      const auto given = request->given.find(text_member(container, "name"));
      if (given == request->given.end()) continue;
      Json& resources = entered(container, "resources");
      Json& limits = entered(resources, "limits");
      for (const char* key : {keys::memory, keys::compute, keys::slot}) {
        if (std::ranges::find(defaulted, DefaultedLimit{given->first, key}) != defaulted.end()) continue;
        limits.erase(key);
        remove(resources, "requests", key);
      }
      for (const auto& [key, value] : given->second) limits[key] = value;
    }
  }
  return out;
}

// A copy of a pod that ran (kubectl get -o yaml | kubectl replace --force) contains its previous node.
std::vector<std::string> leave_node(Json& pod, Json& same) {
  const std::string node = text_member(pod["spec"], "nodeName");
  if (node.empty()) return {};
  pod["spec"].erase("nodeName");
  same["spec"].erase("nodeName");
  return {fmt::format("spec.nodeName {} is left out: Carve's scheduler chooses the node again",
                      node.substr(0, 253))};
}

Result<AdmittedPod, api::FieldErrors> with_warnings(Result<AdmittedPod, api::FieldErrors> admitted,
                                                    const std::vector<std::string>& warnings) {
  if (admitted) admitted->warnings.insert(admitted->warnings.end(), warnings.begin(), warnings.end());
  return admitted;
}

// Compares the fields that an admission writes, but nothing that other webhooks may change between two calls.
// Limits that a LimitRange may have written in between are not compared either.
bool same_marks(Json a, Json b) {
  for (Json* const pod : {&a, &b})
    for (const DefaultedLimit& limit : defaulted_limits(b)) remove_limit(*pod, limit);
  const auto annotation = [](const Json& pod) {
    return text_member(pod["metadata"]["annotations"], kubernetes::request_annotation);
  };
  if (annotation(a) != annotation(b)) return false;
  const auto limits = [](const Json& pod) {
    std::vector<std::optional<uint64_t>> out;  // Parsed, because the API server may write another form.
    for (const char* list : {"containers", "initContainers"})
      if (const Json* const containers = member(pod["spec"], list))
        for (const Json& container : *containers)
          for (const char* key : {keys::memory, keys::compute, keys::slot}) {
            const Json* const resources = member(container, "resources");
            const Json* const of = resources == nullptr ? nullptr : member(*resources, "limits");
            const Json* const value = of == nullptr ? nullptr : member(*of, key);
            out.push_back(value == nullptr ? std::nullopt
                                           : kubernetes::parse_quantity(quantity_text(*value)));
          }
    return out;
  };
  return limits(a) == limits(b);
}

}  // namespace

Result<AdmittedPod, api::FieldErrors> admit(const Json& pod, const PodSettings& settings) {
  const Json* const spec = member(pod, "spec");
  if (!pod.is_object() || spec == nullptr || !spec->is_object())
    return tl::unexpected(one_error("spec", "spec: is required"));
  const Json* const metadata = member(pod, "metadata");
  const Json* const annotations = metadata == nullptr ? nullptr : member(*metadata, "annotations");
  if (annotations != nullptr && annotations->is_object() && annotations->contains(mirror_annotation))
    return AdmittedPod{.pod = pod, .is_sliced = false, .warnings = {}};
  Json stripped = pod;
  std::vector<std::string> warnings;
  auto before = before_admission(pod);
  if (before) warnings = leave_node(*before, stripped);
  if (before) {
    remove_own_marks(*before);
    auto again = Admission(std::move(*before), settings).run();
    if (again && again->is_sliced && same_marks(again->pod, pod))
      return with_warnings(std::move(again), warnings);
  }
  remove_own_marks(stripped);
  return with_warnings(Admission(std::move(stripped), settings).run(), warnings);
}

}  // namespace carve::dialects
