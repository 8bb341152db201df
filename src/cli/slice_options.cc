#include "cli/slice_options.h"

#include <sys/random.h>

#include "base/bytes.h"
#include "base/share.h"

namespace carve::cli {

void add_slice_options(CLI::App* verb, SliceOptions& o) {
  verb->add_option("--memory", o.memory,
                   "Memory quota per device: 4GiB, 4096MiB, 4GB (10^9) or 50% of the usable memory")
      ->type_name("SIZE");
  verb->add_option("--total-memory", o.total_memory, "Memory quota over all --devices, divided equally")
      ->type_name("SIZE");
  verb->add_option("--gpu-mem", o.memory_units,
                   "Memory quota per device in the node's memory units (carve node shows the unit)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1u << 20));
  verb->add_option("--account", o.account, "Account that pays [the user's name]")->type_name("NAME");
  verb->add_option("--label", o.labels, "Label of the slice, kept with its usage record; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--oversubscribe", o.oversubscribe,
                   "managed: memory beyond the quota becomes managed memory in host memory, up to --spill "
                   "per device; each use of it goes over the bus")
      ->check(CLI::IsMember({"managed"}));
  verb->add_option("--spill", o.spill, "Host memory per device that --oversubscribe may use")
      ->type_name("SIZE");
  verb->add_option("--compute", o.compute,
                   "Share of each device's compute, as 30% [none: the slice runs when no entitled slice "
                   "wants the device]")
      ->type_name("PERCENT");
  verb->add_option("--devices", o.devices, "Number of different devices, 1 to 16 [1]")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  verb->add_option("--device", o.device, "Device to use: an index, a UUID or the beginning of a UUID [any]")
      ->type_name("ID");
  verb->add_flag("--exclusive", o.exclusive, "Whole devices, shared with no other slice");
  verb->add_option("--policy", o.policy, "Compute policy that the device must follow [any]")
      ->check(CLI::IsMember(words_of<Policy>()));
  verb->add_flag("--latency", o.latency, "Latency class: served before batch work, within its share");
  verb->add_option("--isolation", o.isolation,
                   "memory+compute: quota and share are enforced [default with --compute]; memory: the quota "
                   "alone is enforced; none: the slice is placed and not limited")
      ->check(CLI::IsMember(words_of<Isolation>()));
  verb->add_option("--strategy", o.strategy, "How a device is chosen if several fit [the agent's]")
      ->check(CLI::IsMember({"binpack", "spread"}));
  verb->add_option(
          "--application", o.application,
          "Application that this slice is a replica of: its replicas go to different devices. With spread "
          "this is the first criterion, with binpack the last")
      ->type_name("NAME");
}

void add_change_options(CLI::App* verb, ChangeOptions& o) {
  verb->add_option("--memory", o.memory, "Memory quota per device: 4GiB, 4096MiB, 4GB (10^9)")
      ->type_name("SIZE");
  verb->add_option("--compute", o.compute, "Share of each device's compute, as 30%")->type_name("PERCENT");
  verb->add_option("--policy", o.policy,
                   "Compute policy, if slices choose theirs (carved --policy-per-slice)")
      ->check(CLI::IsMember(words_of<Policy>()));
  verb->add_flag("--latency", o.latency, "Latency class: served before batch work, within its share");
  verb->add_flag("--batch", o.batch, "Batch class: served after latency work");
}

Result<api::SliceChange, std::string> to_change(const ChangeOptions& o) {
  const auto refuse = [](const char* option, const std::string& value, const char* sentence) {
    return tl::unexpected(fmt::format("{}: '{}' {}", option, value, sentence));
  };
  if (o.latency && o.batch)
    return tl::unexpected(std::string("--latency and --batch exclude each other; give one of the two"));
  if (o.memory.empty() && o.compute.empty() && o.policy.empty() && !o.latency && !o.batch)
    return tl::unexpected(std::string(
        "no change is given; add --memory SIZE, --compute PERCENT, --policy NAME, --latency or --batch"));
  api::SliceChange change;
  if (!o.memory.empty()) {
    const auto bytes = parse_bytes(o.memory);
    if (!bytes) return refuse("--memory", o.memory, bytes.error().sentence);
    change.memory_bytes = bytes->count;
  }
  if (!o.compute.empty()) {
    const auto share = parse_share(o.compute);
    if (!share) return refuse("--compute", o.compute, share.error().sentence);
    change.share_bp = share->basis_points;
  }
  change.policy = parse<Policy>(o.policy);
  if (o.latency || o.batch) change.latency_class = o.latency ? LatencyClass::latency : LatencyClass::batch;
  return change;
}

Result<api::SliceRequest, std::string> to_request(const SliceOptions& o) {
  api::SliceRequest request{.request_id = new_request_id(),
                            .name = o.name,
                            .oversubscribe = o.oversubscribe,
                            .devices = o.devices,
                            .exclusive = o.exclusive,
                            .device = o.device,
                            .strategy = parse<Strategy>(o.strategy),
                            .policy = parse<Policy>(o.policy),
                            .latency_class = o.latency ? LatencyClass::latency : LatencyClass::batch,
                            .isolation = parse<Isolation>(o.isolation),
                            .account = o.account,
                            .application = o.application};
  const auto refuse = [](const char* option, const std::string& value, const char* sentence) {
    return tl::unexpected(fmt::format("{}: '{}' {}", option, value, sentence));
  };
  if (!o.memory.empty() + !o.total_memory.empty() + (o.memory_units != 0) > 1)
    return tl::unexpected(std::string(
        "--memory is per device, --total-memory over all devices and --gpu-mem in units; give one of "
        "the three"));
  if (o.exclusive &&
      (!o.memory.empty() || !o.total_memory.empty() || !o.compute.empty() || o.memory_units != 0))
    return tl::unexpected(std::string(
        "--exclusive takes whole devices; leave out --memory, --total-memory, --gpu-mem and --compute"));
  if (o.memory.empty() && o.total_memory.empty() && o.memory_units == 0 && !o.exclusive)
    return tl::unexpected(std::string(
        "no memory is given; add --memory SIZE (as in --memory 4GiB), --total-memory SIZE or --exclusive"));
  if (o.memory_units != 0) request.memory_units = o.memory_units;
  for (const std::string& label : o.labels) {
    const size_t equal = label.find('=');
    if (equal == std::string::npos || equal == 0) return refuse("--label", label, "is not KEY=VALUE");
    const auto [known, is_new] = request.labels.emplace(label.substr(0, equal), label.substr(equal + 1));
    if (!is_new && known->second != label.substr(equal + 1))
      return refuse("--label", label, "has another value too");
  }
  if (o.memory.ends_with('%')) {
    const auto share = parse_share(o.memory);
    if (!share) return refuse("--memory", o.memory, share.error().sentence);
    request.memory_bp = share->basis_points;
  } else if (!o.memory.empty()) {
    const auto bytes = parse_bytes(o.memory);
    if (!bytes) return refuse("--memory", o.memory, bytes.error().sentence);
    request.memory_bytes = bytes->count;
  }
  if (!o.total_memory.empty()) {
    const auto bytes = parse_bytes(o.total_memory);
    if (!bytes) return refuse("--total-memory", o.total_memory, bytes.error().sentence);
    request.total_memory_bytes = bytes->count;
  }
  if (o.oversubscribe.empty() != o.spill.empty())
    return tl::unexpected(
        std::string("--oversubscribe managed and --spill SIZE need each other; give both or neither"));
  if (!o.spill.empty()) {
    const auto bytes = parse_bytes(o.spill);
    if (!bytes) return refuse("--spill", o.spill, bytes.error().sentence);
    request.spill_bytes = bytes->count;
  }
  if (o.isolation == "memory+compute" && o.compute.empty())
    return tl::unexpected(std::string("--isolation memory+compute needs a share; add --compute 30%"));
  if (!o.compute.empty()) {
    const auto share = parse_share(o.compute);
    if (!share) return refuse("--compute", o.compute, share.error().sentence);
    request.share_bp = share->basis_points;
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
