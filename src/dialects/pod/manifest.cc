#include "dialects/pod/manifest.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/request.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"
#include "dialects/pod/pod_requests.h"
#include "dialects/pod/program_container.h"
#include "dialects/pod/unknown_requests.h"
#include "objects/rules/service_terms.h"
#include "workload/service.h"

namespace carve::dialects {
namespace {

using api::Json;

struct Kind {
  std::string_view name;
  std::string_view api_version;
  bool has_template;  // Whether its pods are in spec.template.
};
constexpr Kind kinds[] = {{.name = "Pod", .api_version = "v1", .has_template = false},
                          {.name = "Deployment", .api_version = "apps/v1", .has_template = true},
                          {.name = "StatefulSet", .api_version = "apps/v1", .has_template = true}};

const Kind* kind_of(const Json& document) {
  if (!document.is_object() || !document.contains("kind") || !document["kind"].is_string()) return nullptr;
  const auto* const found = std::ranges::find(kinds, document["kind"].get<std::string>(), &Kind::name);
  return found == std::end(kinds) ? nullptr : found;
}

// Converts a Kubernetes quantity into Carve's form: "4Gi" into "4GiB", "1G" into "1GB", "1024" into "1024B".
std::string amount_of(const std::string& quantity) {
  const size_t end = quantity.find_last_of("0123456789");
  const std::string suffix = end == std::string::npos ? "" : quantity.substr(end + 1);
  return suffix == "m" ? quantity : quantity + "B";
}

// Returns the dialect's name as in spec.source.
std::string dialect_word(std::optional<Dialect> dialect) {
  if (!dialect || *dialect == Dialect::carve || *dialect == Dialect::nvidia) return "kubernetes";
  return std::string(text(*dialect));
}

// Replaces each $(NAME) of a variable by its value and $$ by $, as Kubernetes does in command, args and the
// values of env (its third_party/forked/golang/expansion). Other references are kept.
std::string expanded(std::string_view text, const std::map<std::string, std::string>& env) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = text[at] == '$' && at + 1 < text.size() ? text[at + 1] : '\0';
    const size_t end = next == '(' ? text.find(')', at) : std::string_view::npos;
    if (next == '$') {
      ++at;
      out += '$';
    } else if (end != std::string_view::npos) {
      const auto variable = env.find(std::string(text.substr(at + 2, end - at - 2)));
      out += variable != env.end() ? variable->second : text.substr(at, end + 1 - at);
      at = end;
    } else {
      out += text[at];
    }
  }
  return out;
}

objects::Gpu gpu_of(const Amounts& request) {
  objects::Gpu out{.devices = request.devices, .exclusive = request.exclusive};
  if (request.memory_bytes) out.memory = fmt::format("{}MiB", *request.memory_bytes >> 20);
  if (request.memory_units) out.memory = fmt::format("{} units", *request.memory_units);
  if (request.memory_bp) out.memory = text(Share{*request.memory_bp});
  if (request.share_bp) out.share = text(Share{*request.share_bp});
  for (const Part& part : request.parts) {
    Part memory = part;
    memory.share_bp.reset();
    out.parts.push_back(
        {text(std::vector{memory}), part.share_bp ? text(Share{*part.share_bp}).c_str() : ""});
  }
  if (request.isolation) out.isolation = text(*request.isolation);
  if (request.policy) out.policy = text(*request.policy);
  return out;
}

class ManifestTranslation {
 public:
  ManifestTranslation(const Json& document, const Kind& kind, const PodSettings& settings)
      : kind_(kind), settings_(settings), reader_(document, errors_) {}

  Result<ManifestService, api::FieldErrors> run(std::string_view document) {
    service_.api_version = objects::api_version;
    service_.kind = "Service";
    const JsonMember root = reader_.root();
    const std::string version = reader_.text(reader_.named(root, "apiVersion"));
    reader_.named(root, "kind");
    if (version != kind_.api_version)
      errors_.add("apiVersion", version, "{} is not {}, the version of a {}", objects::typed(version),
                  kind_.api_version, kind_.name);
    read_metadata(reader_.object(root, "metadata"));
    const JsonMember spec = reader_.object(root, "spec");
    JsonMember pod_spec = spec, pod_metadata = reader_.object(root, "metadata"), pod = root;
    if (kind_.has_template) {
      service_.spec.replicas = static_cast<uint32_t>(
          reader_.whole(reader_.named(spec, "replicas"), 0, workload::max_replicas).value_or(1));
      for (const char* structural : {"selector", "serviceName"}) reader_.named(spec, structural);
      read_management(reader_.named(spec, "podManagementPolicy"));
      if (kind_.name ==
          "StatefulSet") {  // Its pods keep their names, so a pod ends before its replacement starts.
        service_.spec.update.max_surge = 0;
        service_.spec.update.max_unavailable = 1;
        service_.metadata.annotations[replica_names_annotation] = ordinal_names;
      }
      pod = reader_.object(spec, "template");
      pod_spec = reader_.object(pod, "spec");
      pod_metadata = reader_.object(pod, "metadata");
    }
    const JsonMember containers = reader_.list(pod_spec, "containers");
    read_restart_policy(reader_.named(pod_spec, "restartPolicy"));
    if (pod_spec) check_choice(pod_spec);
    const size_t program = pod_spec ? program_container(*pod_spec.value) : 0;
    read_container(reader_.item(containers, program), program, containers ? containers.value->size() : 0,
                   pod_metadata);
    if (pod)
      refuse_unknown_gpu_requests(*pod.value, pod.path.empty() ? "" : pod.path + ".",
                                  service_.spec.gpu.has_value(), settings_, errors_);
    service_.spec.source.document = document;
    if (errors_.empty()) errors_.add_all(objects::check(service_));
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    std::vector<std::string> warnings = reader_.without_effect();
    warnings.insert(warnings.end(), warnings_.begin(), warnings_.end());
    return ManifestService{.service = std::move(service_), .warnings = std::move(warnings)};
  }

 private:
  void read_metadata(const JsonMember& metadata) {
    service_.metadata.name = reader_.text(reader_.named(metadata, "name"));
    if (const JsonMember name = reader_.named(metadata, "namespace"))
      service_.metadata.namespace_ = reader_.text(name);
    service_.metadata.labels = reader_.members(reader_.object(metadata, "labels"));
    service_.metadata.annotations = reader_.members(reader_.object(metadata, "annotations"));
  }

  void read_gpu(const PodParts& pod, const ContainerParts& container) {
    PodRequests requests;
    ContainerReader reader(reader_, errors_, settings_, pod, container);
    read_container_request(reader, requests);
    service_.spec.source.dialect = dialect_word(requests.dialect);
    if (requests.containers.empty()) return;
    const Amounts& request = requests.containers.begin()->second;
    service_.spec.gpu = gpu_of(request);
    warn_of(request);
  }

  // Replicas always start together here, as with Parallel.
  void read_management(const JsonMember& policy) {
    if (!policy) return;
    const std::string given = reader_.text(policy);
    if (given == "OrderedReady")
      warnings_.push_back(
          fmt::format("{} {} has no effect here: replicas are started together", policy.path, given));
    else if (given != "Parallel" && policy.value->is_string())
      errors_.add(policy.path, given, "{} is neither Parallel nor OrderedReady", objects::typed(given));
  }

  void read_restart_policy(const JsonMember& policy) {
    if (!policy) return;
    const std::string given = reader_.text(policy);
    const auto known = parse<RestartPolicy>(given);
    if (!known && policy.value->is_string())
      errors_.add(policy.path, given, "{} is not one of {}", objects::typed(given),
                  choice(Words<RestartPolicy>::words));
    else if (known && kind_.has_template && *known != RestartPolicy::always)
      errors_.add(policy.path, given, "{}: the programs of a {} are always restarted; use a Pod",
                  objects::typed(given), kind_.name);
    else if (known)
      service_.spec.restart_policy = *known;
  }

  // Warns about requirements that only a cluster with several nodes can meet.
  void warn_of(const Amounts& request) {
    const std::pair<bool, const char*> rows[] = {{request.latency_class.has_value(), "a latency class"},
                                                 {request.strategy.has_value(), "a placement strategy"},
                                                 {!request.models.empty(), "a choice of models"},
                                                 {!request.device_uuids.empty(), "a choice of devices"},
                                                 {request.spill_bytes != 0, "spill"}};
    for (const auto& [is_there, what] : rows)
      if (is_there) warnings_.push_back(fmt::format("the manifest has {}, which has no effect here", what));
  }

  // A Pod's annotations are also those of the service, so without_effect() does not report HAMi's.
  void warn_of_annotations(const JsonMember& annotations) {
    if (!annotations) return;
    for (const auto& [key, value] : annotations.value->items())
      if (key == keys::hami_use_type || key == keys::hami_no_type ||
          (key.starts_with("hami.io/") && key != keys::hami_strategy))
        warnings_.push_back(fmt::format("{}.{} has no effect here", annotations.path, key.substr(0, 80)));
  }

  // Rejects a pod in which several containers, or only an init container, request a GPU.
  void check_choice(const JsonMember& pod_spec) {
    const auto names = [&](const char* list, const std::vector<size_t>& indexes) {
      std::string out;
      for (const size_t i : indexes)
        out += (out.empty() ? "" : ", ") + objects::typed(text_member((*pod_spec.value)[list][i], "name"));
      return out;
    };
    const auto found = containers_with_gpu(*pod_spec.value, "containers");
    const auto init = containers_with_gpu(*pod_spec.value, "initContainers");
    if (found.size() > 1)
      errors_.add(pod_spec.path + ".containers", names("containers", found),
                  "the containers {} request a GPU, but a service runs one container; write a manifest for "
                  "each of them, or remove the limits of all but one",
                  names("containers", found));
    if (found.empty() && !init.empty())
      errors_.add(pod_spec.path + ".initContainers", names("initContainers", init),
                  "the init container {} requests a GPU, but init containers do not run here; move the "
                  "limits to the container with the program",
                  names("initContainers", {init.front()}));
  }

  void read_container(const JsonMember& container, size_t index, size_t containers,
                      const JsonMember& pod_metadata) {
    if (!container)
      return errors_.add("containers", "", "the pod has no container; add one with image or command");
    objects::Run& run = service_.spec.run;
    const std::string name = reader_.text(reader_.named(container, "name"));
    run.image = reader_.text(reader_.named(container, "image"));
    read_env(reader_.list(container, "env"));
    for (const std::string& word : reader_.texts(reader_.named(container, "command")))
      run.command.push_back(expanded(word, run.env));
    // A local program has no ENTRYPOINT that args would follow.
    auto& arguments = run.image.empty() ? run.command : run.args;
    for (const std::string& word : reader_.texts(reader_.named(container, "args")))
      arguments.push_back(expanded(word, run.env));
    const JsonMember resources = reader_.object(container, "resources");
    const PodParts pod{.labels = reader_.object(pod_metadata, "labels"),
                       .annotations = reader_.object(pod_metadata, "annotations"),
                       .containers = containers};
    const ContainerParts parts{.name = name,
                               .index = index,
                               .limits = reader_.object(resources, "limits"),
                               .requests = reader_.object(resources, "requests")};
    read_resource(parts, "cpu", service_.spec.cpu);
    read_resource(parts, "memory", service_.spec.memory);
    read_gpu(pod, parts);
    if (!kind_.has_template) warn_of_annotations(pod.annotations);
    reader_.members(pod.labels);  // The template's labels, which its selector uses.
  }

  // Skips a variable whose value comes from elsewhere; a warning reports its field.
  void read_env(const JsonMember& list) {
    for (size_t i = 0; list && i < list.value->size(); ++i) {
      const JsonMember item = reader_.item(list, i);
      const JsonMember name = reader_.named(item, "name");
      const JsonMember value = reader_.named(item, "value");
      if (item && !name) errors_.add(item.path + ".name", "", "the variable has no name; add one");
      if (name && (value || !item.value->contains("valueFrom")))
        service_.spec.run.env[reader_.text(name)] = expanded(reader_.text(value), service_.spec.run.env);
    }
  }

  // Returns the quantity in Carve's form. Empty if it is missing or after an error.
  std::string quantity(const JsonMember& member, bool is_memory) {
    if (!member) return "";
    const Json& value = *member.value;
    const std::string given = value.is_number() ? value.dump() : reader_.text(member);
    const std::string amount = is_memory ? amount_of(given) : given;
    const char* why = nullptr;
    if (is_memory) {
      if (const auto bytes = parse_bytes(amount); !bytes)
        why = "is not a quantity of bytes; try 4Gi or 512Mi";
    } else if (const auto cores = objects::parse_cores(amount); !cores) {
      why = cores.error().message;
    }
    if (why == nullptr) return amount;
    if (value.is_number() || value.is_string())
      errors_.add(member.path, given, "{} {}", objects::typed(given), why);
    return "";
  }

  void read_resource(const ContainerParts& container, const char* name, objects::Resource& out) {
    const bool is_memory = std::string_view(name) == "memory";
    out.limit = quantity(reader_.named(container.limits, name), is_memory);
    out.request = quantity(reader_.named(container.requests, name), is_memory);
  }

  const Kind& kind_;
  const PodSettings& settings_;
  objects::ErrorList errors_;
  JsonReader reader_;
  objects::Service service_;
  std::vector<std::string> warnings_;
};

api::FieldErrors one_error(std::string message) {
  return {{.field = "", .value = "", .message = std::move(message)}};
}

}  // namespace

bool is_manifest(std::string_view json) {
  const auto document = api::parse(json);
  return document && kind_of(*document) != nullptr;
}

Result<ManifestService, api::FieldErrors> from_manifest(std::string_view json, const PodSettings& settings) {
  if (json.size() > api::max_document_bytes)
    return tl::unexpected(one_error(fmt::format("the document has {} bytes; it may have at most {}",
                                                json.size(), api::max_document_bytes)));
  const auto document = api::parse(json);
  if (!document) return tl::unexpected(one_error(document.error()));
  const Kind* const kind = kind_of(*document);
  if (kind == nullptr)
    return tl::unexpected(one_error("kind: the document is not a Pod, Deployment or StatefulSet"));
  return ManifestTranslation(*document, *kind, settings).run(json);
}

}  // namespace carve::dialects
