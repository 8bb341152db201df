#include "render/manifests.h"

#include "dialects/pod/keys.h"
#include "kubernetes/format/quantity.h"
#include "objects/error_list.h"
#include "objects/rules/service_terms.h"
#include "yaml/yaml_text.h"

namespace carve::render {
namespace {

using api::Json;

constexpr uint64_t mib_bytes = 1 << 20;
constexpr const char* name_label = "app.kubernetes.io/name";
constexpr uint32_t hundred_percent = 100;

// Converts one of Carve's amounts into a Kubernetes quantity: "4GiB" into "4Gi", "512MB" into "512M", "1024B"
// into "1024".
std::string quantity_text(const std::string& amount) {
  return amount.ends_with('B') ? amount.substr(0, amount.size() - 1) : amount;
}

// Creates the manifests of one service; each function creates one part.
class Rendering {
 public:
  Rendering(const objects::Metadata& metadata, const objects::ServiceSpec& spec)
      : metadata_(metadata), spec_(spec) {}

  Result<ServiceObjects, api::FieldErrors> run() {
    ServiceObjects out;
    out.objects.push_back(deployment());
    if (spec_.port) out.objects.push_back(address());
    warn_of_the_rest();
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    out.warnings = std::move(warnings_);
    return out;
  }

 private:
  // Returns the program's port, because in a cluster each pod has its own address.
  uint32_t target_port() const { return spec_.target_port.value_or(*spec_.port); }

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
    return {
        {"apiVersion", "v1"},
        {"kind", "Service"},
        {"metadata", metadata(false)},
        {"spec",
         {{"selector", selector()}, {"ports", {{{"port", *spec_.port}, {"targetPort", target_port()}}}}}}};
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
    Json out{{"operator", text(one.operator_)}};
    for (const auto& [key, value] :
         {std::pair{"key", one.key}, {"value", one.value}, {"effect", text(one.effect)}})
      if (!value.empty()) out[key] = value;
    return out;
  }

  Json container() {
    Json out{{"name", metadata_.name}};
    if (!spec_.run.image.empty()) out["image"] = spec_.run.image;
    if (!spec_.run.command.empty()) out["command"] = spec_.run.command;
    if (!spec_.run.args.empty()) out["args"] = spec_.run.args;
    if (!spec_.run.workdir.empty()) out["workingDir"] = spec_.run.workdir;
    for (const auto& [name, value] : variables()) out["env"].push_back({{"name", name}, {"value", value}});
    if (spec_.port) {
      out["ports"].push_back({{"containerPort", target_port()}});
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
    // A program with a target port does not read PORT, which is how `carve apply` recognizes such manifests.
    if (spec_.port && !spec_.target_port)
      out.emplace("PORT", fmt::format("{}", target_port()));  // As for each replica on Carve's own nodes.
    return out;
  }

  Json probe() const {
    const objects::Readiness& readiness = spec_.readiness;
    Json out{{"periodSeconds", readiness.period_seconds},
             {"timeoutSeconds", readiness.timeout_seconds},
             {"failureThreshold", readiness.failure_threshold}};
    if (readiness.http_get)
      out["httpGet"] = {{"path", readiness.http_get->path}, {"port", target_port()}};
    else
      out["tcpSocket"] = {{"port", target_port()}};
    return out;
  }

  void render_resource(const char* name, const objects::Resource& resource) {
    if (!resource.limit.empty()) limits_[name] = quantity_text(resource.limit);
    if (!resource.request.empty()) requests_[name] = quantity_text(resource.request);
  }

  void render_gpu(const objects::Gpu& gpu) {
    const auto terms = objects::terms_of(spec_);
    if (!terms) return errors_.add_all(terms.error());
    if (terms->gpu->exclusive)
      limits_[dialects::keys::devices] = gpu.devices;
    else if (!terms->gpu->parts.empty())
      render_parts(*terms->gpu);
    else if (terms->gpu->memory_bp)
      render_part(*terms->gpu);
    else if (terms->gpu->memory_units)
      render_units(*terms->gpu);
    else
      render_bytes(*terms->gpu);
    if (!gpu.policy.empty()) annotations_[dialects::keys::policy] = gpu.policy;
    render_isolation(*terms->gpu);
  }

  // In every dialect with a share, a share implies memory+compute.
  void render_isolation(const Amounts& terms) {
    if (!terms.isolation) return;
    if (terms.has_share() && *terms.isolation != Isolation::memory_and_compute)
      errors_.add(
          "spec.gpu.isolation", std::string(text(*terms.isolation)),
          "a share of compute implies isolation {} in Kubernetes; leave out the share or the isolation",
          text(Isolation::memory_and_compute));
    else
      annotations_[dialects::keys::isolation] = text(*terms.isolation);
  }

  void render_bytes(const Amounts& terms) {
    const uint64_t mib = (*terms.memory_bytes + mib_bytes - 1) / mib_bytes;
    if (mib * mib_bytes != *terms.memory_bytes)
      warnings_.push_back(
          fmt::format("spec.gpu.memory: '{}' is rendered as {} MiB, because {} counts whole MiB",
                      spec_.gpu->memory, mib, dialects::keys::memory));
    limits_[dialects::keys::memory] = kubernetes::quantity_of_bytes(mib * mib_bytes * terms.devices);
    if (terms.devices > 1) limits_[dialects::keys::devices] = terms.devices;
    if (terms.share_bp)
      if (const auto percent =
              whole_percent(uint64_t{*terms.share_bp} * terms.devices, dialects::keys::compute))
        limits_[dialects::keys::compute] = *percent;
  }

  void render_parts(const Amounts& terms) {
    limits_[dialects::keys::devices] = terms.device_count();
    annotations_[dialects::keys::parts] = text(terms.parts);
  }

  void render_part(const Amounts& terms) {
    limits_[dialects::keys::nvidia_gpu] = terms.devices;
    if (*terms.memory_bp % hundred_percent != 0)
      errors_.add("spec.gpu.memory", spec_.gpu->memory, "{} is not a whole percentage, which {} requires",
                  objects::typed(spec_.gpu->memory), dialects::keys::hami_part);
    limits_[dialects::keys::hami_part] = *terms.memory_bp / hundred_percent;
    if (terms.share_bp)
      if (const auto percent = whole_percent(*terms.share_bp, dialects::keys::hami_cores))
        limits_[dialects::keys::hami_cores] = *percent;
  }

  void render_units(const Amounts& terms) {
    constexpr uint64_t step = 5;
    limits_[dialects::keys::ack_memory] = uint64_t{*terms.memory_units} * terms.devices;
    if (terms.devices > 1) labels_[dialects::keys::ack_count] = fmt::format("{}", terms.devices);
    if (!terms.share_bp) return;
    const auto percent = whole_percent(*terms.share_bp, dialects::keys::ack_core);
    if (percent && *percent % step != 0)
      errors_.add("spec.gpu.share", spec_.gpu->share, "{} is not a multiple of {} %, which {} requires",
                  objects::typed(spec_.gpu->share), step, dialects::keys::ack_core);
    else if (terms.devices > 1)
      errors_.add("spec.gpu.share", spec_.gpu->share,
                  "a share on several devices requires memory in GiB in Kubernetes, not in units");
    else if (percent)
      limits_[dialects::keys::ack_core] = *percent;
  }

  std::optional<uint64_t> whole_percent(uint64_t basis_points, const char* key) {
    if (basis_points % hundred_percent == 0) return basis_points / hundred_percent;
    errors_.add("spec.gpu.share", spec_.gpu->share, "{} is not a whole percentage, which {} requires",
                objects::typed(spec_.gpu->share), key);
    return std::nullopt;
  }

  void warn_of_the_rest() {
    const std::pair<bool, const char*> rows[] = {
        {spec_.run.image.empty(), "spec.run.image is missing, but Kubernetes runs only containers; add one"},
        {!spec_.pool.empty(), "spec.pool is not rendered; choose nodes with a nodeSelector"},
        {spec_.autoscale.has_value(), "spec.autoscale is not rendered; use a HorizontalPodAutoscaler"},
        {!metadata_.account.empty(), "metadata.account is not rendered; usage is billed to the namespace"}};
    for (const auto& [is_there, message] : rows)
      if (is_there) warnings_.emplace_back(message);
  }

  const objects::Metadata& metadata_;
  const objects::ServiceSpec& spec_;
  objects::ErrorList errors_;
  Json limits_ = Json::object(), requests_ = Json::object();
  std::map<std::string, std::string> labels_, annotations_;  // The pod's.
  std::vector<std::string> warnings_;
};

}  // namespace

Result<ServiceObjects, api::FieldErrors> objects_of(const objects::Metadata& metadata,
                                                    const objects::ServiceSpec& spec) {
  return Rendering(metadata, spec).run();
}

Result<Manifests, api::FieldErrors> manifests_of(const objects::Metadata& metadata,
                                                 const objects::ServiceSpec& spec) {
  auto objects = objects_of(metadata, spec);
  if (!objects) return tl::unexpected(std::move(objects.error()));
  Manifests out{.text = "", .warnings = std::move(objects->warnings)};
  for (const Json& object : objects->objects)
    out.text += (out.text.empty() ? "" : "---\n") + yaml::yaml_text(object);
  return out;
}

}  // namespace carve::render
