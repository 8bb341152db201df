#include "core/request.h"

#include <algorithm>

namespace carve {
namespace {

template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

// Returns why this is not a valid amount of memory of one device, or an empty string.
std::string problem(PerDevice m) {
  if (m.memory >= min_memory) return "";
  return fmt::format("{} of memory is too little; a slice needs at least 1 MiB", text(m.memory).c_str());
}
std::string problem(OfUsable m) {
  if (m.part.basis_points != 0 && m.part <= whole_device) return "";
  return "a part of a device's memory must be above 0% and at most 100%";
}
tl::unexpected<Failure> invalid(std::string message) {
  return tl::unexpected(Failure{FailureKind::invalid_argument, std::move(message)});
}

Bytes bytes_of(PerDevice m, const Device&) { return m.memory; }
Bytes bytes_of(OfUsable m, const Device& device) {
  const auto part = static_cast<unsigned __int128>(device.usable().count) * m.part.basis_points / 10000;
  return Bytes{static_cast<uint64_t>(part) & ~((uint64_t{1} << 20) - 1)};
}

Outcome<void> memory_rules(const Request& r) {
  if (r.exclusive) {
    if (!std::holds_alternative<std::monostate>(r.memory))
      return failure(FailureKind::invalid_argument,
                     "an exclusive request takes whole devices; leave out the memory");
    if (r.share.basis_points != 0)
      return failure(FailureKind::invalid_argument,
                     "an exclusive request takes whole devices; leave out the compute share");
    return {};
  }
  return std::visit(Cases{
                        [](std::monostate) -> Outcome<void> {
                          return failure(FailureKind::invalid_argument,
                                         "the request has no memory; add an amount, such as 4GiB or 50%");
                        },
                        [](PerDevice m) -> Outcome<void> {
                          if (std::string why = problem(m); !why.empty()) return invalid(std::move(why));
                          return {};
                        },
                        [&](InTotal m) -> Outcome<void> {
                          if (m.memory.count == 0 || m.memory.count % (uint64_t{r.devices} << 20) != 0)
                            return failure(FailureKind::invalid_argument,
                                           "{} in total for {} devices must be a positive multiple of {} MiB",
                                           text(m.memory).c_str(), r.devices, r.devices);
                          return {};
                        },
                        [](OfUsable m) -> Outcome<void> {
                          if (std::string why = problem(m); !why.empty()) return invalid(std::move(why));
                          return {};
                        },
                    },
                    r.memory);
}

// Checks the share of part `i`, and that either all parts have a share or none has one.
Outcome<void> part_share_rules(const Request& r, const char* list, size_t i, Share share) {
  if (share > whole_device)
    return failure(FailureKind::invalid_argument,
                   "{}[{}]: the compute share of one device must be at most 100%", list, i);
  if ((share.basis_points == 0) != (r.first_share().basis_points == 0))
    return failure(FailureKind::invalid_argument,
                   "{}[{}]: give a compute share on each device or on none of them", list, i);
  return {};
}

// Checks the parts to which placement assigns devices.
Outcome<void> part_rules(const Request& r) {
  if (r.parts.size() > max_slice_devices)
    return failure(FailureKind::invalid_argument, "parts: {} are given; a slice can have 1 to {}",
                   r.parts.size(), max_slice_devices);
  if (r.parts.size() != r.devices)
    return failure(FailureKind::invalid_argument,
                   "devices: {} requested, but {} parts given; leave out devices", r.devices, r.parts.size());
  if (!std::holds_alternative<std::monostate>(r.memory) || r.share.basis_points != 0 || r.exclusive ||
      !r.placed.empty())
    return failure(FailureKind::invalid_argument,
                   "parts: each part has its own memory and share; leave out other memory, share, exclusive "
                   "and placed");
  for (size_t i = 0; i < r.parts.size(); ++i) {
    if (const std::string why = std::visit([](auto m) { return problem(m); }, r.parts[i].memory);
        !why.empty())
      return failure(FailureKind::invalid_argument, "parts[{}]: {}", i, why);
    if (const auto good = part_share_rules(r, "parts", i, r.parts[i].share); !good) return good;
  }
  return {};
}

// Checks the parts that were decided elsewhere.
Outcome<void> placed_rules(const Request& r) {
  if (r.placed.size() > max_slice_devices)
    return failure(FailureKind::invalid_argument, "placed: {} parts are given; a slice can have 1 to {}",
                   r.placed.size(), max_slice_devices);
  if (!std::holds_alternative<std::monostate>(r.memory) || r.share.basis_points != 0 || r.device ||
      !r.among.empty() || r.strategy)
    return failure(FailureKind::invalid_argument,
                   "placed: the parts already have device, memory and share; leave them and the strategy out "
                   "of the request itself");
  for (size_t i = 0; i < r.placed.size(); ++i) {
    const PlacedPart& part = r.placed[i];
    if (std::ranges::count(r.placed, part.device, &PlacedPart::device) != 1)
      return failure(FailureKind::invalid_argument, "placed[{}]: {} occurs twice; combine the two parts", i,
                     text(part.device));
    if (r.exclusive && part.share.basis_points != 0)
      return failure(FailureKind::invalid_argument,
                     "placed[{}]: an exclusive request takes whole devices; leave out the compute share", i);
    if (!r.exclusive && part.memory < min_memory)
      return failure(FailureKind::invalid_argument,
                     "placed[{}]: {} of memory is too little; a slice needs at least 1 MiB", i,
                     text(part.memory).c_str());
    if (const auto good = part_share_rules(r, "placed", i, part.share); !good) return good;
  }
  return {};
}

// Checks the length and the characters (printable ASCII) of texts from outside that are stored and shown.
Outcome<void> word_rules(const Request& r) {
  if (r.models.size() > max_allowed_models)
    return failure(FailureKind::invalid_argument, "{} models are given; a request can list at most {}",
                   r.models.size(), max_allowed_models);
  if (r.labels.size() > max_labels)
    return failure(FailureKind::invalid_argument, "{} labels are given; a request has at most {}",
                   r.labels.size(), max_labels);
  const auto check = [](std::string_view what, std::string_view word, bool may_be_empty) -> Outcome<void> {
    if (word.size() > max_label_bytes || (word.empty() && !may_be_empty) ||
        std::ranges::any_of(word, [](char c) { return c < ' ' || c > '~'; }))
      return failure(FailureKind::invalid_argument,
                     "'{}' is not a valid {}; use {} to {} printable ASCII characters", word.substr(0, 40),
                     what, may_be_empty ? 0 : 1, max_label_bytes);
    return {};
  };
  for (const std::string& m : r.models)
    if (const auto good = check("model", m, false); !good) return good;
  for (const auto& [key, value] : r.labels) {
    if (const auto good = check("label", key, false); !good) return good;
    if (const auto good = check("label's value", value, true); !good) return good;
  }
  if (const auto good = check("account", r.account, true); !good) return good;
  return check("application", r.application, true);
}

}  // namespace

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 63 && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-'; });
}

Outcome<Request> validated(Request r) {
  if (!r.name.empty() && !is_name(r.name))
    return failure(FailureKind::invalid_argument,
                   "'{}' is not a slice name; use up to 63 characters from a-z, 0-9 and -, beginning with a "
                   "letter or digit",
                   r.name.substr(0, 80));
  if (r.request_id.size() > 128)
    return failure(FailureKind::invalid_argument,
                   "a request id of {} characters is too long; use at most 128 characters",
                   r.request_id.size());
  if (!r.placed.empty() && r.devices == 1) r.devices = static_cast<unsigned>(r.placed.size());
  if (!r.placed.empty() && r.devices != r.placed.size())
    return failure(FailureKind::invalid_argument,
                   "devices: {} requested, but {} parts placed; leave out devices", r.devices,
                   r.placed.size());
  if (!r.placed.empty())
    if (const auto good = placed_rules(r); !good) return tl::unexpected(good.error());
  if (!r.parts.empty())
    if (const auto good = part_rules(r); !good) return tl::unexpected(good.error());
  if (r.devices < 1 || r.devices > max_slice_devices)
    return failure(FailureKind::invalid_argument, "{} devices are requested; a slice can have 1 to {}",
                   r.devices, max_slice_devices);
  if (r.share > whole_device)
    return failure(FailureKind::invalid_argument,
                   "the compute share of one device is too large; use at most 100%");
  if (r.device && r.devices != 1)
    return failure(FailureKind::invalid_argument,
                   "one device is selected, but {} devices are requested; request 1", r.devices);
  if (r.spill.count != 0 && (r.isolated() == Isolation::none || r.exclusive))
    return failure(FailureKind::invalid_argument,
                   "spill needs a quota; leave it out of a request with isolation none or exclusive devices");
  if (r.isolated() == Isolation::memory_and_compute && r.exclusive && r.first_share().basis_points == 0)
    return failure(FailureKind::invalid_argument,
                   "an exclusive request has all compute of its devices; leave out the isolation");
  if (r.isolated() == Isolation::memory_and_compute && r.first_share().basis_points == 0)
    return failure(FailureKind::invalid_argument,
                   "isolation memory+compute needs a compute share; add one, such as 30%");
  if (r.spill.count % (1 << 20) != 0)
    return failure(FailureKind::invalid_argument, "a spill of {} is not a whole number of MiB; round it",
                   text(r.spill).c_str());
  if (r.slot && !r.holder.pod)
    return failure(FailureKind::invalid_argument,
                   "slot: {} belongs to a container; set the holder to its pod", text(*r.slot));
  if (r.holder) {
    if (const auto good = check(r.holder); !good) return tl::unexpected(good.error());
    if (r.lifetime != Lifetime::until_deleted)
      return failure(FailureKind::invalid_argument, "lifetime: a slice for a {} must have the lifetime '{}'",
                     r.holder.pod ? "pod" : "claim", text(Lifetime::until_deleted));
  }
  if (r.placed.empty() && r.parts.empty())
    if (const auto memory = memory_rules(r); !memory) return tl::unexpected(memory.error());
  if (const auto words = word_rules(r); !words) return tl::unexpected(words.error());
  return r;
}

Share share_of(const Request& r, size_t part) {
  if (r.exclusive) return whole_device;
  return r.parts.empty() ? r.share : r.parts[part].share;
}

Bytes need(const Request& r, size_t part, const Device& device) {
  if (r.exclusive) return device.usable();
  if (!r.parts.empty()) return std::visit([&](auto m) { return bytes_of(m, device); }, r.parts[part].memory);
  return std::visit(Cases{
                        [](std::monostate) { return Bytes{}; },
                        [&](InTotal m) { return Bytes{m.memory.count / r.devices}; },
                        [&](auto m) { return bytes_of(m, device); },
                    },
                    r.memory);
}

}  // namespace carve
