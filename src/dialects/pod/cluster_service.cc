#include "dialects/pod/cluster_service.h"

#include <algorithm>

#include "dialects/json_reader.h"
#include "dialects/pod/container_reader.h"
#include "dialects/pod/pod_json.h"
#include "dialects/pod/program_container.h"

namespace carve::dialects {
namespace {

using api::Json;

constexpr const char* port_field = "spec.ports[0].port";
constexpr const char* target_field = "spec.ports[0].targetPort";
constexpr const char* port_variable = "PORT";

// Returns a port's number or name as a text.
std::string port_text(JsonReader& reader, const JsonMember& member) {
  if (!member) return "";
  if (member.value->is_string()) return member.value->get<std::string>();
  const auto number = reader.whole(member, 1, UINT16_MAX);
  return number ? fmt::format("{}", *number) : "";
}

// Returns whether the word contains a shell reference to the variable, such as $PORT, ${PORT:-8000} or
// $(PORT).
bool reads_variable(std::string_view word) {
  for (const std::string_view form : {"$PORT", "${PORT", "$(PORT"})
    for (size_t at = word.find(form); at != word.npos; at = word.find(form, at + 1)) {
      const size_t end = at + form.size();
      const char next = end < word.size() ? word[end] : ' ';
      if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_') return true;
    }
  return false;
}

bool reads_port(const objects::Run& run) {
  return run.env.contains(port_variable) || std::ranges::any_of(run.command, reads_variable) ||
         std::ranges::any_of(run.args, reads_variable);
}

}  // namespace

bool is_cluster_service(std::string_view json) {
  const auto document = api::parse(json);
  return document && document->is_object() && document->value("kind", Json()) == "Service" &&
         document->value("apiVersion", Json()) == "v1";
}

Result<ClusterService, api::FieldErrors> read_cluster_service(std::string_view json) {
  const auto document = api::parse(json);
  if (!document)
    return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .message = document.error()}});
  objects::ErrorList errors;
  JsonReader reader(*document, errors);
  const JsonMember root = reader.root(), metadata = reader.object(root, "metadata"),
                   spec = reader.object(root, "spec");
  for (const char* known : {"apiVersion", "kind"}) reader.named(root, known);
  ClusterService out{.name = reader.text(reader.named(metadata, "name")),
                     .name_space = reader.text(reader.named(metadata, "namespace"))};
  for (const char* known : {"labels", "annotations"}) reader.named(metadata, known);
  out.selector = reader.members(reader.object(spec, "selector"));
  const JsonMember port = reader.item(reader.list(spec, "ports"), 0);
  out.port = static_cast<uint32_t>(reader.whole(reader.named(port, "port"), 1, UINT16_MAX).value_or(0));
  out.target = port_text(reader, reader.named(port, "targetPort"));
  const std::string protocol = reader.text(reader.named(port, "protocol"));
  reader.named(port, "name");
  if (out.name.empty()) errors.add("metadata.name", "", "the Service has no name; add one");
  if (out.port == 0 && errors.empty())
    errors.add(port_field, "", "the Service has no port; add one, such as 8000");
  if (out.selector.empty() && errors.empty())
    errors.add("spec.selector", "", "the Service has no selector; add the labels of its pods");
  if (!protocol.empty() && protocol != "TCP")
    errors.add("spec.ports[0].protocol", protocol, "{}: Carve services support only TCP; leave it out",
               objects::typed(protocol));
  if (!errors.empty()) return tl::unexpected(errors.all());
  if (const JsonMember type = reader.named(spec, "type"); type && reader.text(type) != "ClusterIP")
    out.warnings.push_back(
        fmt::format("Service {}: {} is ignored: the address is local to this machine", out.name, type.path));
  for (const std::string& warning : reader.without_effect())
    out.warnings.push_back(fmt::format("Service {}: {}", out.name, warning));
  return out;
}

PodFace pod_face(std::string_view manifest) {
  PodFace out;
  const auto document = api::parse(manifest);
  if (!document) return out;
  const Json* const within = member(member(&*document, "spec"), "template");
  const Json* const pod = within != nullptr ? within : &*document;
  if (const Json* const labels = member(member(pod, "metadata"), "labels"); labels && labels->is_object())
    for (const auto& [key, value] : labels->items())
      if (value.is_string()) out.labels[key] = value.get<std::string>();
  const Json* const spec = member(pod, "spec");
  const Json* const containers = member(spec, "containers");
  if (containers == nullptr || !containers->is_array() || containers->empty()) return out;
  const Json* const ports = member(&(*containers)[program_container(*spec)], "ports");
  if (ports == nullptr || !ports->is_array()) return out;
  for (const Json& port : *ports) {
    const Json* const number = member(&port, "containerPort");
    if (number != nullptr && number->is_number_unsigned() && number->get<uint64_t>() <= UINT16_MAX)
      out.ports[text_member(port, "name")] = number->get<uint32_t>();
  }
  return out;
}

bool selects(const ClusterService& service, const PodFace& pod) {
  return std::ranges::all_of(service.selector, [&](const auto& wanted) {
    const auto found = pod.labels.find(wanted.first);
    return found != pod.labels.end() && found->second == wanted.second;
  });
}

Result<void, api::FieldErrors> give_port(const ClusterService& service, const PodFace& pod,
                                         objects::ServiceSpec& spec) {
  objects::ErrorList errors;
  std::optional<uint64_t> target = service.port;
  if (const auto named = pod.ports.find(service.target); !service.target.empty() && named != pod.ports.end())
    target = named->second;
  else if (!service.target.empty())
    target = ContainerReader::number(service.target, 1, UINT16_MAX);
  if (!target)
    errors.add(target_field, service.target,
               "{} is neither a port number nor the name of a port of the container",
               objects::typed(service.target));
  spec.port = service.port;
  spec.target_port.reset();
  if (target && !reads_port(spec.run)) {
    spec.target_port = static_cast<uint32_t>(*target);
    if (spec.replicas > 1)
      errors.add(
          target_field, fmt::format("{}", *target),
          "{}: only one of the {} replicas can listen on this port, because they run on one machine; let the "
          "program listen on the port in its variable PORT and add PORT to env, or set replicas: 1",
          *target, spec.replicas);
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return {};
}

}  // namespace carve::dialects
