#include "fronts/render/manifests.h"

#include "fronts/json_reader.h"
#include "fronts/pod/keys.h"
#include "fronts/pod/quantity.h"
#include "fronts/render/yaml_text.h"
#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

using api::Json;

constexpr uint64_t mib_bytes = 1 << 20;
constexpr const char* name_label = "app.kubernetes.io/name";
constexpr uint32_t hundred_percent = 100;

// Returns an amount of ours as a quantity of Kubernetes: "4GiB" is "4Gi", "512MB" is "512M", "1024B" is
// "1024".
std::string quantity_text(const std::string& amount) {
  return amount.ends_with('B') ? amount.substr(0, amount.size() - 1) : amount;
}

// Makes the manifests of one service; each function makes one part.
class Rendering {
 public:
  Rendering(const objects::Metadata& metadata, const objects::ServiceSpec& spec)
      : metadata_(metadata), spec_(spec) {}

  Result<Manifests, api::FieldErrors> run() {
    std::string text = yaml_text(deployment());
    if (spec_.port) text += "---\n" + yaml_text(address());
    warn_of_the_rest();
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    return Manifests{.text = std::move(text), .warnings = std::move(warnings_)};
  }

 private:
  Json selector() const { return {{name_label, metadata_.name}}; }

  Json metadata(bool with_annotations) const {
    Json out{{"name", metadata_.name}};
    if (metadata_.namespace_ != objects::Metadata().namespace_) out["namespace"] = metadata_.namespace_;
    if (!metadata_.labels.empty()) out["labels"] = metadata_.labels;
    if (with_annotations && !metadata_.annotations.empty()) out["annotations"] = metadata_.annotations;
    return out;
  }

  Json deployment() {
    Json spec{{"replicas", spec_.stopped ? 0 : spec_.replicas},
              {"selector", {{"matchLabels", selector()}}},
              {"progressDeadlineSeconds", spec_.update.progress_deadline_seconds},
              {"strategy",
               {{"type", "RollingUpdate"},
                {"rollingUpdate",
                 {{"maxSurge", spec_.update.max_surge}, {"maxUnavailable", spec_.update.max_unavailable}}}}}};
    spec["template"] = pod();
    return {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", metadata(true)}, {"spec", spec}};
  }

  Json address() const {
    return {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", metadata(false)},
            {"spec",
             {{"selector", selector()}, {"ports", {{{"port", *spec_.port}, {"targetPort", *spec_.port}}}}}}};
  }

  Json pod() {
    labels_ = metadata_.labels;
    labels_[name_label] = metadata_.name;
    Json spec{{"terminationGracePeriodSeconds", spec_.termination_grace_period_seconds}};
    spec["containers"] = Json::array({container()});
    for (const objects::Toleration& one : spec_.tolerations) spec["tolerations"].push_back(toleration(one));
    Json metadata{{"labels", labels_}};
    if (!annotations_.empty()) metadata["annotations"] = annotations_;
    return {{"metadata", metadata}, {"spec", spec}};
  }

  static Json toleration(const objects::Toleration& one) {
    Json out{{"operator", one.operator_}};
    for (const auto& [key, value] :
         {std::pair{"key", &one.key}, {"value", &one.value}, {"effect", &one.effect}})
      if (!value->empty()) out[key] = *value;
    return out;
  }

  Json container() {
    Json out{{"name", metadata_.name}};
    if (!spec_.run.image.empty()) out["image"] = spec_.run.image;
    if (!spec_.run.command.empty()) out["command"] = spec_.run.command;
    if (!spec_.run.workdir.empty()) out["workingDir"] = spec_.run.workdir;
    for (const auto& [name, value] : variables()) out["env"].push_back({{"name", name}, {"value", value}});
    if (spec_.port) {
      out["ports"].push_back({{"containerPort", *spec_.port}});
      out["readinessProbe"] = probe();
    }
    render_resource("cpu", spec_.cpu);
    render_resource("memory", spec_.memory);
    if (spec_.gpu) render_gpu(*spec_.gpu);
    if (!limits_.empty()) out["resources"]["limits"] = limits_;
    if (!requests_.empty()) out["resources"]["requests"] = requests_;
    return out;
  }

  std::map<std::string, std::string> variables() const {
    std::map<std::string, std::string> out = spec_.run.env;
    if (spec_.port) out.emplace("PORT", fmt::format("{}", *spec_.port));  // As each replica gets it here.
    return out;
  }

  Json probe() const {
    const objects::Readiness& readiness = spec_.readiness;
    Json out{{"periodSeconds", readiness.period_seconds},
             {"timeoutSeconds", readiness.timeout_seconds},
             {"failureThreshold", readiness.failure_threshold}};
    if (readiness.http_get)
      out["httpGet"] = {{"path", readiness.http_get->path}, {"port", *spec_.port}};
    else
      out["tcpSocket"] = {{"port", *spec_.port}};
    return out;
  }

  void render_resource(const char* name, const objects::Resource& resource) {
    if (!resource.limit.empty()) limits_[name] = quantity_text(resource.limit);
    if (!resource.request.empty()) requests_[name] = quantity_text(resource.request);
  }

  void render_gpu(const objects::Gpu& gpu) {
    const auto terms = terms_of(spec_);
    if (!terms) return errors_.add_all(terms.error());
    if (terms->gpu->exclusive)
      limits_[keys::devices] = gpu.devices;
    else if (terms->gpu->memory_bp)
      render_part(*terms->gpu);
    else if (terms->gpu->memory_units)
      render_units(*terms->gpu);
    else
      render_bytes(*terms->gpu);
    if (!gpu.policy.empty()) annotations_[keys::policy] = gpu.policy;
    render_isolation(*terms->gpu);
  }

  // A share alone means memory+compute to every dialect that has a share.
  void render_isolation(const GpuTerms& terms) {
    if (!terms.isolation) return;
    if (terms.share_bp && *terms.isolation != Isolation::memory_and_compute)
      errors_.add("spec.gpu.isolation", std::string(text(*terms.isolation)),
                  "a share of compute has isolation {} in Kubernetes; leave one of them out",
                  text(Isolation::memory_and_compute));
    else
      annotations_[keys::isolation] = text(*terms.isolation);
  }

  void render_bytes(const GpuTerms& terms) {
    const uint64_t mib = (*terms.memory_bytes + mib_bytes - 1) / mib_bytes;
    if (mib * mib_bytes != *terms.memory_bytes)
      warnings_.push_back(
          fmt::format("spec.gpu.memory: '{}' is rendered as {} MiB, because {} is in whole MiB",
                      spec_.gpu->memory, mib, keys::memory));
    limits_[keys::memory] = quantity_of_bytes(mib * mib_bytes * terms.devices);
    if (terms.devices > 1) limits_[keys::devices] = terms.devices;
    if (terms.share_bp)
      if (const auto percent = whole_percent(uint64_t{*terms.share_bp} * terms.devices, keys::compute))
        limits_[keys::compute] = *percent;
  }

  void render_part(const GpuTerms& terms) {
    limits_[keys::nvidia_gpu] = terms.devices;
    if (*terms.memory_bp % hundred_percent != 0)
      errors_.add("spec.gpu.memory", spec_.gpu->memory, "{} is not a whole percent, which {} counts",
                  typed(spec_.gpu->memory), keys::hami_part);
    limits_[keys::hami_part] = *terms.memory_bp / hundred_percent;
    if (terms.share_bp)
      if (const auto percent = whole_percent(*terms.share_bp, keys::hami_cores))
        limits_[keys::hami_cores] = *percent;
  }

  void render_units(const GpuTerms& terms) {
    constexpr uint64_t step = 5;
    limits_[keys::ack_memory] = uint64_t{*terms.memory_units} * terms.devices;
    if (terms.devices > 1) labels_[keys::ack_count] = fmt::format("{}", terms.devices);
    if (!terms.share_bp) return;
    const auto percent = whole_percent(*terms.share_bp, keys::ack_core);
    if (percent && *percent % step != 0)
      errors_.add("spec.gpu.share", spec_.gpu->share, "{} is not in steps of {} %, which {} counts",
                  typed(spec_.gpu->share), step, keys::ack_core);
    else if (terms.devices > 1)
      errors_.add("spec.gpu.share", spec_.gpu->share,
                  "several devices in units share memory only in Kubernetes; name the memory in GiB");
    else if (percent)
      limits_[keys::ack_core] = *percent;
  }

  std::optional<uint64_t> whole_percent(uint64_t basis_points, const char* key) {
    if (basis_points % hundred_percent == 0) return basis_points / hundred_percent;
    errors_.add("spec.gpu.share", spec_.gpu->share, "{} is not a whole percent, which {} counts",
                typed(spec_.gpu->share), key);
    return std::nullopt;
  }

  void warn_of_the_rest() {
    const std::pair<bool, const char*> rows[] = {
        {spec_.run.image.empty(), "spec.run.image is absent: Kubernetes starts containers only, so add one"},
        {!spec_.pool.empty(), "spec.pool is not rendered: choose nodes with a nodeSelector"},
        {spec_.autoscale.has_value(), "spec.autoscale is not rendered: use a HorizontalPodAutoscaler"},
        {!metadata_.account.empty(), "metadata.account is not rendered: the namespace pays"}};
    for (const auto& [is_there, sentence] : rows)
      if (is_there) warnings_.emplace_back(sentence);
  }

  const objects::Metadata& metadata_;
  const objects::ServiceSpec& spec_;
  ErrorList errors_;
  Json limits_ = Json::object(), requests_ = Json::object();
  std::map<std::string, std::string> labels_, annotations_;  // Of the pod.
  std::vector<std::string> warnings_;
};

}  // namespace

Result<Manifests, api::FieldErrors> manifests_of(const objects::Metadata& metadata,
                                                 const objects::ServiceSpec& spec) {
  return Rendering(metadata, spec).run();
}

bool is_cluster_service(std::string_view json) {
  const auto document = api::parse(json);
  return document && document->is_object() && document->value("kind", Json()) == "Service" &&
         document->value("apiVersion", Json()) == "v1";
}

Result<ClusterService, api::FieldErrors> read_cluster_service(std::string_view json) {
  const auto document = api::parse(json);
  if (!document)
    return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .sentence = document.error()}});
  ErrorList errors;
  JsonReader reader(*document, errors);
  ClusterService out{.name = reader.text(reader.named(reader.object(reader.root(), "metadata"), "name"))};
  const JsonMember ports = reader.list(reader.object(reader.root(), "spec"), "ports");
  const auto port = reader.whole(reader.named(reader.item(ports, 0), "port"), 1, UINT16_MAX);
  if (errors.empty() && (out.name.empty() || !port))
    errors.add("spec.ports", "", "a Service has a name and a port; add metadata.name and spec.ports[0].port");
  if (!errors.empty()) return tl::unexpected(errors.all());
  out.port = static_cast<uint32_t>(*port);
  return out;
}

}  // namespace carve::fronts
