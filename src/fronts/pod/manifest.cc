#include "fronts/pod/manifest.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/request.h"
#include "fronts/pod/pod_requests.h"
#include "fronts/service_terms.h"
#include "workload/service.h"

namespace carve::fronts {
namespace {

using api::Json;

struct Kind {
  std::string_view name;
  std::string_view api_version;
  bool has_template;  // Of pods, in spec.template.
};
constexpr Kind kinds[] = {{.name = "Pod", .api_version = "v1", .has_template = false},
                          {.name = "Deployment", .api_version = "apps/v1", .has_template = true},
                          {.name = "StatefulSet", .api_version = "apps/v1", .has_template = true}};

const Kind* kind_of(const Json& document) {
  if (!document.is_object() || !document.contains("kind") || !document["kind"].is_string()) return nullptr;
  const auto* const found = std::ranges::find(kinds, document["kind"].get<std::string>(), &Kind::name);
  return found == std::end(kinds) ? nullptr : found;
}

// Returns a quantity of Kubernetes as an amount of ours: "4Gi" is "4GiB", "1G" is "1GB", "1024" is "1024B".
std::string amount_of(const std::string& quantity) {
  const size_t end = quantity.find_last_of("0123456789");
  const std::string suffix = end == std::string::npos ? "" : quantity.substr(end + 1);
  return suffix == "m" ? quantity : quantity + "B";
}

// Returns the dialect as spec.source names it.
std::string dialect_word(std::optional<Dialect> dialect) {
  if (!dialect || *dialect == Dialect::carve || *dialect == Dialect::nvidia) return "kubernetes";
  return std::string(text(*dialect));
}

objects::Gpu gpu_of(const ContainerRequest& request) {
  objects::Gpu out{.devices = request.devices, .exclusive = request.exclusive};
  if (request.memory_bytes) out.memory = fmt::format("{}MiB", *request.memory_bytes >> 20);
  if (request.memory_units) out.memory = fmt::format("{} units", *request.memory_units);
  if (request.memory_bp) out.memory = text(Share{*request.memory_bp});
  if (request.share_bp) out.share = text(Share{*request.share_bp});
  if (request.isolation) out.isolation = text(*request.isolation);
  if (request.policy) out.policy = text(*request.policy);
  return out;
}

class ManifestTranslation {
 public:
  ManifestTranslation(const Json& document, const Kind& kind) : kind_(kind), reader_(document, errors_) {}

  Result<ManifestService, api::FieldErrors> run(std::string_view document) {
    service_.api_version = objects::api_version;
    service_.kind = "Service";
    const JsonMember root = reader_.root();
    const std::string version = reader_.text(reader_.named(root, "apiVersion"));
    reader_.named(root, "kind");
    if (version != kind_.api_version)
      errors_.add("apiVersion", version, "{} is not {}, which a {} has", typed(version), kind_.api_version,
                  kind_.name);
    read_metadata(reader_.object(root, "metadata"));
    const JsonMember spec = reader_.object(root, "spec");
    JsonMember pod_spec = spec, pod_metadata = reader_.object(root, "metadata");
    if (kind_.has_template) {
      service_.spec.replicas = static_cast<uint32_t>(
          reader_.whole(reader_.named(spec, "replicas"), 0, workload::max_replicas).value_or(1));
      for (const char* structural : {"selector", "serviceName"}) reader_.named(spec, structural);
      const JsonMember pod = reader_.object(spec, "template");
      pod_spec = reader_.object(pod, "spec");
      pod_metadata = reader_.object(pod, "metadata");
    }
    const JsonMember containers = reader_.list(pod_spec, "containers");
    read_container(reader_.item(containers, 0), containers ? containers.value->size() : 0, pod_metadata);
    service_.spec.source.document = document;
    if (errors_.empty()) errors_.add_all(check(service_));
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
    const PodSettings settings;  // Of one machine.
    PodRequests requests;
    ContainerReader reader(reader_, errors_, settings, pod, container);
    read_container_request(reader, requests);
    service_.spec.source.dialect = dialect_word(requests.dialect);
    if (requests.containers.empty()) return;
    const ContainerRequest& request = requests.containers.begin()->second;
    service_.spec.gpu = gpu_of(request);
    warn_of(request);
  }

  // A cluster chooses among its nodes by more than one machine has.
  void warn_of(const ContainerRequest& request) {
    const std::pair<bool, const char*> rows[] = {{request.latency.has_value(), "a latency class"},
                                                 {request.strategy.has_value(), "a placement strategy"},
                                                 {!request.models.empty(), "a choice of models"},
                                                 {!request.device_uuids.empty(), "a choice of devices"},
                                                 {request.spill_bytes != 0, "spill"}};
    for (const auto& [is_there, what] : rows)
      if (is_there) warnings_.push_back(fmt::format("the manifest has {}, which has no effect here", what));
  }

  void read_container(const JsonMember& container, size_t containers, const JsonMember& pod_metadata) {
    if (!container)
      return errors_.add("containers", "", "there is no container; add one with image or command");
    objects::Run& run = service_.spec.run;
    const std::string name = reader_.text(reader_.named(container, "name"));
    run.image = reader_.text(reader_.named(container, "image"));
    run.command = reader_.texts(reader_.named(container, "command"));
    for (std::string& argument : reader_.texts(reader_.named(container, "args")))
      run.command.push_back(std::move(argument));
    read_env(reader_.list(container, "env"));
    const JsonMember resources = reader_.object(container, "resources");
    const PodParts pod{.labels = reader_.object(pod_metadata, "labels"),
                       .annotations = reader_.object(pod_metadata, "annotations"),
                       .containers = containers};
    const ContainerParts parts{.name = name,
                               .limits = reader_.object(resources, "limits"),
                               .requests = reader_.object(resources, "requests")};
    read_resource(parts, "cpu", service_.spec.cpu);
    read_resource(parts, "memory", service_.spec.memory);
    read_gpu(pod, parts);
    reader_.members(pod.labels);  // Of the template: its selector uses them.
  }

  // A variable whose value comes from elsewhere is left out; a warning names its field.
  void read_env(const JsonMember& list) {
    for (size_t i = 0; list && i < list.value->size(); ++i) {
      const JsonMember item = reader_.item(list, i);
      const JsonMember name = reader_.named(item, "name");
      const JsonMember value = reader_.named(item, "value");
      if (item && !name) errors_.add(item.path + ".name", "", "the variable has no name; add it");
      if (name && (value || !item.value->contains("valueFrom")))
        service_.spec.run.env[reader_.text(name)] = reader_.text(value);
    }
  }

  // Returns the quantity as an amount of ours; empty: there is none, or an error.
  std::string quantity(const JsonMember& member, bool is_memory) {
    if (!member) return "";
    const Json& value = *member.value;
    const std::string given = value.is_number() ? value.dump() : reader_.text(member);
    const std::string amount = is_memory ? amount_of(given) : given;
    const char* why = nullptr;
    if (is_memory) {
      if (const auto bytes = parse_bytes(amount); !bytes)
        why = "is not a quantity of bytes; try 4Gi or 512Mi";
    } else if (const auto cores = parse_cores(amount); !cores) {
      why = cores.error().sentence;
    }
    if (why == nullptr) return amount;
    if (value.is_number() || value.is_string()) errors_.add(member.path, given, "{} {}", typed(given), why);
    return "";
  }

  void read_resource(const ContainerParts& container, const char* name, objects::Resource& out) {
    const bool is_memory = std::string_view(name) == "memory";
    out.limit = quantity(reader_.named(container.limits, name), is_memory);
    out.request = quantity(reader_.named(container.requests, name), is_memory);
  }

  const Kind& kind_;
  ErrorList errors_;
  JsonReader reader_;
  objects::Service service_;
  std::vector<std::string> warnings_;
};

api::FieldErrors one_error(std::string sentence) {
  return {{.field = "", .value = "", .sentence = std::move(sentence)}};
}

}  // namespace

bool is_manifest(std::string_view json) {
  const auto document = api::parse(json);
  return document && kind_of(*document) != nullptr;
}

Result<ManifestService, api::FieldErrors> from_manifest(std::string_view json) {
  if (json.size() > objects::max_document_bytes)
    return tl::unexpected(one_error(fmt::format("the document has {} bytes; it may have at most {}",
                                                json.size(), objects::max_document_bytes)));
  const auto document = api::parse(json);
  if (!document) return tl::unexpected(one_error(document.error()));
  const Kind* const kind = kind_of(*document);
  if (kind == nullptr)
    return tl::unexpected(one_error("kind: the document is not a Pod, Deployment or StatefulSet"));
  return ManifestTranslation(*document, *kind).run(json);
}

}  // namespace carve::fronts
