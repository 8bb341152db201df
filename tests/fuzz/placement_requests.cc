// Any request against any small node is rejected with a message, or it is valid. Under every strategy, a
// valid request is placed on distinct devices that have room, or there is a reason for each device.
#include <cstdlib>

#include "place/place.h"

namespace {

using namespace carve;

// Returns the input's bytes, and zeros after its end.
class Dice {
 public:
  Dice(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  uint64_t number(unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes && left_ > 0; ++i, --left_) value = value << 8 | *data_++;
    return value;
  }
  // Returns mostly small numbers, and sometimes any number.
  uint64_t some() { return number(1) % 4 == 0 ? number(8) : number(1) % 40; }
  std::string word() {
    std::string out;
    for (uint64_t n = number(1) % 9; n > 0; --n) out.push_back(static_cast<char>(number(1)));
    return out;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

Request request(Dice& dice) {
  Request r;
  switch (dice.number(1) % 4) {
    case 0: break;
    case 1: r.memory = PerDevice{{dice.some() << (dice.number(1) % 35)}}; break;
    case 2: r.memory = InTotal{{dice.some() << (dice.number(1) % 35)}}; break;
    case 3: r.memory = OfUsable{{static_cast<uint32_t>(dice.number(2))}}; break;
  }
  r.name = dice.word();
  r.share = {static_cast<uint32_t>(dice.some() * 250)};
  r.spill = {dice.some() << 20};
  r.devices = static_cast<unsigned>(dice.some());
  r.exclusive = dice.number(1) % 8 == 0;
  r.isolation = dice.number(1) % 4 == 0 ? Isolation::none : Isolation::memory;
  for (uint64_t n = dice.number(1) % 3; n > 0; --n) r.models.push_back(dice.word());
  for (uint64_t n = dice.number(1) % 3; n > 0; --n) r.labels.emplace(dice.word(), dice.word());
  r.account = dice.word();
  r.application = dice.word();
  if (dice.number(1) % 4 != 0) return r;
  // Different parts, mostly instead of the other amounts.
  for (uint64_t n = dice.number(1) % 6; n > 0; --n) {
    PartRequest& part = r.parts.emplace_back();
    if (dice.number(1) % 4 == 0)
      part.memory = OfUsable{{static_cast<uint32_t>(dice.number(2))}};
    else
      part.memory = PerDevice{{dice.some() << (dice.number(1) % 35)}};
    part.share = {static_cast<uint32_t>(dice.number(1) * 40)};
  }
  if (dice.number(1) % 8 == 0) return r;
  r.memory = std::monostate{};
  r.share = {};
  r.exclusive = false;
  r.devices = static_cast<unsigned>(r.parts.size());
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Dice dice(data, size);
  std::vector<place::DeviceSnapshot> devices;
  for (uint64_t n = dice.number(1) % 5; n > 0; --n) {
    place::DeviceSnapshot c;
    c.device.index = static_cast<unsigned>(devices.size());
    c.device.uuid.bytes[0] = static_cast<uint8_t>(devices.size() + 1);
    c.device.native = {(dice.number(1) % 32 + 1) << 30};
    c.free = {dice.number(2) % ((c.device.native.count >> 20) + 1) << 20};
    c.free_share = {static_cast<uint32_t>(dice.number(2) % 10001)};
    c.context = {dice.number(1) << 20};
    c.slices = static_cast<unsigned>(dice.number(1) % 20);
    c.isolated = c.slices - static_cast<unsigned>(dice.number(1) % (c.slices + 1));
    c.exclusive = dice.number(1) % 16 == 0;
    if (dice.number(1) % 16 == 0) c.trouble = "lost";
    devices.push_back(c);
  }
  const auto sound = validated(request(dice));
  if (!sound) {
    if (sound.error().message.empty()) std::abort();
    return 0;
  }
  for (unsigned s = 0; s <= static_cast<unsigned>(Strategy::lookahead); ++s) {
    const auto answer = place::place(devices, *sound, static_cast<Strategy>(s));
    if (answer.verdicts.size() != devices.size()) std::abort();
    if (!answer.placement) {
      if (answer.summary.empty()) std::abort();
      continue;
    }
    const auto& chosen = answer.placement->parts;
    if (chosen.size() != sound->devices) std::abort();
    uint32_t used = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i > 0 && sound->parts.empty() && chosen[i].device <= chosen[i - 1].device) std::abort();
      if ((used >> chosen[i].device & 1) != 0) std::abort();
      used |= 1u << chosen[i].device;
      const place::DeviceSnapshot& c = devices[chosen[i].device];
      if (chosen[i].memory != need(*sound, i, c.device)) std::abort();
      if (chosen[i].memory > c.free || chosen[i].share > c.free_share) std::abort();
      if (c.exclusive || !c.trouble.empty() || !answer.verdicts[chosen[i].device].fits) std::abort();
      if (sound->exclusive && c.slices != 0) std::abort();
    }
  }
  return 0;
}
