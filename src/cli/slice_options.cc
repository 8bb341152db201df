#include "cli/slice_options.h"

#include <sys/random.h>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/terminal.h"

namespace carve::cli {

void add_slice_options(CLI::App* verb, SliceOptions& o) {
  verb->add_option("-m,--memory", o.memory,
                   "Memory quota per device: 4GiB, 4096MiB, 4GB (10^9) or 50% of the usable memory")
      ->type_name("SIZE");
  verb->add_option("--total-memory", o.total_memory,
                   "Memory quota of all --devices together, divided equally")
      ->type_name("SIZE");
  verb->add_option("--gpu-mem", o.memory_units,
                   "Memory quota per device in the node's memory units (carve node shows the unit)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 20));
  verb->add_option("--parts", o.parts,
                   "Memory and share of each device, if they differ, in the order of the program's devices: "
                   "8GiB:30%,4GiB:10%")
      ->type_name("SIZE[:PERCENT],...");
  verb->add_option("--account", o.account, "Account that pays [your user name]")->type_name("NAME");
  verb->add_option("--label", o.labels, "Label of the slice, kept with its usage record; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--oversubscribe", o.oversubscribe,
                   "managed: memory beyond the quota becomes managed memory in host memory, up to --spill "
                   "per device; each access to it crosses the bus")
      ->check(CLI::IsMember({"managed"}));
  verb->add_option("--spill", o.spill, "Host memory per device that --oversubscribe may use")
      ->type_name("SIZE");
  verb->add_option("--compute", o.compute,
                   "Share of each device's compute, such as 30% [none: the slice runs when no entitled slice "
                   "wants the device]")
      ->type_name("PERCENT");
  verb->add_option("--devices", o.devices, "Number of different devices, 1 to 16 [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  verb->add_option("--device", o.device,
                   "Device to use: an index, a UUID or the beginning of a UUID; a list with commas allows "
                   "any of them [any]")
      ->type_name("ID");
  verb->add_flag("--exclusive", o.exclusive, "Reserve whole devices, shared with no other slice");
  verb->add_option("--policy", o.policy, "Compute policy that the device must follow [any]")
      ->check(CLI::IsMember(words_of<Policy>()));
  verb->add_flag("--latency", o.latency, "Latency class: served before batch work, within its share");
  verb->add_option("--isolation", o.isolation,
                   "memory+compute: quota and share are enforced [default with --compute]; memory: only the "
                   "quota is enforced; none: the slice is placed but not limited")
      ->check(CLI::IsMember(words_of<Isolation>()));
  verb->add_option("--strategy", o.strategy, "How a device is chosen if several fit [the agent's]")
      ->check(CLI::IsMember({"binpack", "spread"}));
  verb->add_option("--application", o.application,
                   "Application that this slice is a replica of: its replicas go to different devices. This "
                   "is the first criterion with spread and the last with binpack")
      ->type_name("NAME");
}

void add_change_options(CLI::App* verb, ChangeOptions& o) {
  verb->add_option("-m,--memory", o.memory, "Memory quota per device: 4GiB, 4096MiB, 4GB (10^9)")
      ->type_name("SIZE");
  verb->add_option("--compute", o.compute, "Share of each device's compute, such as 30%")
      ->type_name("PERCENT");
  verb->add_option("--policy", o.policy,
                   "Compute policy, if slices choose theirs (carved --policy-per-slice)")
      ->check(CLI::IsMember(words_of<Policy>()));
  verb->add_flag("--latency", o.latency, "Latency class: served before batch work, within its share");
  verb->add_flag("--batch", o.batch, "Batch class: served after latency work");
}

Result<api::SliceChange, std::string> to_change(const ChangeOptions& o) {
  const auto refuse = [](const char* option, const std::string& value, const char* message) {
    return tl::unexpected(fmt::format("{}: '{}' {}", option, value, message));
  };
  if (o.latency && o.batch)
    return tl::unexpected(std::string("--latency and --batch are mutually exclusive; give only one"));
  if (o == ChangeOptions())
    return tl::unexpected(
        std::string("no change is given; add --memory SIZE, --compute PERCENT, --policy NAME, --latency, "
                    "--batch or --time TIME"));
  api::SliceChange change;
  if (!o.memory.empty()) {
    const auto bytes = parse_bytes(o.memory);
    if (!bytes) return refuse("--memory", o.memory, bytes.error().message);
    change.memory_bytes = bytes->count;
  }
  if (!o.compute.empty()) {
    const auto share = parse_share(o.compute);
    if (!share) return refuse("--compute", o.compute, share.error().message);
    change.share_bp = share->basis_points;
  }
  change.policy = parse<Policy>(o.policy);
  if (o.latency || o.batch) change.latency_class = o.latency ? LatencyClass::latency : LatencyClass::batch;
  return change;
}

namespace {

// Returns the option that cannot be combined with --parts, or an empty string.
std::string given_beside_parts(const SliceOptions& o) {
  const std::pair<const char*, bool> options[] = {
      {"--memory", !o.memory.empty()},    {"--total-memory", !o.total_memory.empty()},
      {"--gpu-mem", o.memory_units != 0}, {"--compute", !o.compute.empty()},
      {"--exclusive", o.exclusive},       {"--devices", o.devices != 1}};
  for (const auto& [name, is_given] : options)
    if (is_given) return name;
  return "";
}

Result<std::vector<Part>, std::string> parts_of(const SliceOptions& o) {
  if (o.parts.empty()) return {};
  if (const std::string other = given_beside_parts(o); !other.empty())
    return tl::unexpected(fmt::format(
        "--parts already sets the devices and the memory and share of each; leave out {}", other));
  auto parts = parse_parts(o.parts);
  if (!parts) return tl::unexpected("--parts: " + parts.error());
  for (size_t i = 0; i < parts->size(); ++i)
    if ((*parts)[i].share_bp.has_value() != parts->front().share_bp.has_value())
      return tl::unexpected(
          fmt::format("--parts: part {} has {} share, but part 1 has {}; give a share for each device or for "
                      "none of them",
                      i + 1, (*parts)[i].share_bp ? "a" : "no", parts->front().share_bp ? "one" : "none"));
  return parts;
}

// Returns why the options do not define the requested memory; empty if they do.
std::string memory_problem(const SliceOptions& o) {
  const int given = !o.memory.empty() + !o.total_memory.empty() + (o.memory_units != 0);
  if (given > 1)
    return "--memory is per device, --total-memory is for all devices together, and --gpu-mem is in memory "
           "units; give only one of them";
  if (o.exclusive && (given != 0 || !o.compute.empty()))
    return "--exclusive takes whole devices; leave out --memory, --total-memory, --gpu-mem and --compute";
  if (given == 0 && !o.exclusive && o.parts.empty())
    return "no memory is given; add --memory SIZE (as in --memory 4GiB), --total-memory SIZE, --parts LIST "
           "or --exclusive";
  return "";
}

}  // namespace

Result<api::SliceRequest, std::string> to_request(const SliceOptions& o) {
  api::SliceRequest request{
      .request_id = new_request_id(),
      .name = o.name,
      .amounts = {.devices = o.devices,
                  .exclusive = o.exclusive,
                  .isolation = parse<Isolation>(o.isolation),
                  .policy = parse<Policy>(o.policy),
                  .latency_class = o.latency ? LatencyClass::latency : LatencyClass::batch,
                  .strategy = parse<Strategy>(o.strategy)},
      .oversubscribe = o.oversubscribe,
      .device = o.device,
      .account = o.account,
      .application = o.application};
  const auto refuse = [](const char* option, const std::string& value, const char* message) {
    return tl::unexpected(fmt::format("{}: '{}' {}", option, value, message));
  };
  auto parts = parts_of(o);
  if (!parts) return tl::unexpected(parts.error());
  request.amounts.parts = std::move(*parts);
  if (std::string problem = memory_problem(o); !problem.empty()) return tl::unexpected(std::move(problem));
  if (o.memory_units != 0) request.amounts.memory_units = o.memory_units;
  for (const std::string& label : o.labels) {
    const size_t equal = label.find('=');
    if (equal == std::string::npos || equal == 0) return refuse("--label", label, "must be KEY=VALUE");
    const auto [known, is_new] = request.labels.emplace(label.substr(0, equal), label.substr(equal + 1));
    if (!is_new && known->second != label.substr(equal + 1))
      return refuse("--label", label, "conflicts with another --label with the same key");
  }
  if (o.memory.ends_with('%')) {
    const auto share = parse_share(o.memory);
    if (!share) return refuse("--memory", o.memory, share.error().message);
    request.amounts.memory_bp = share->basis_points;
  } else if (!o.memory.empty()) {
    const auto bytes = parse_bytes(o.memory);
    if (!bytes) return refuse("--memory", o.memory, bytes.error().message);
    request.amounts.memory_bytes = bytes->count;
  }
  if (!o.total_memory.empty()) {
    const auto bytes = parse_bytes(o.total_memory);
    if (!bytes) return refuse("--total-memory", o.total_memory, bytes.error().message);
    request.amounts.total_memory_bytes = bytes->count;
  }
  if (o.oversubscribe.empty() != o.spill.empty())
    return tl::unexpected(
        std::string("--oversubscribe managed and --spill SIZE must be used together; give both or neither"));
  if (!o.spill.empty()) {
    const auto bytes = parse_bytes(o.spill);
    if (!bytes) return refuse("--spill", o.spill, bytes.error().message);
    request.amounts.spill_bytes = bytes->count;
  }
  if (o.isolation == "memory+compute" && o.compute.empty() && !request.amounts.has_share())
    return tl::unexpected(
        o.parts.empty()
            ? std::string("--isolation memory+compute needs a share; add --compute 30%")
            : "--isolation memory+compute needs a share of each part; write --parts 8GiB:30%,4GiB:10%");
  if (!o.compute.empty()) {
    const auto share = parse_share(o.compute);
    if (!share) return refuse("--compute", o.compute, share.error().message);
    request.amounts.share_bp = share->basis_points;
  }
  return request;
}

std::string new_request_id() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    std::abort();  // getrandom(2): a read of up to 256 bytes does not fail.
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace carve::cli
