// Which devices a request lands on: a snapshot of the machine and a request in, a placement or each
// device's reason out. Pure: no clock, no chance, no state; the same question gets the same answer.
//
// It works in two steps. Hard rules say, device by device, whether the request could stand there at all. A
// policy then chooses among the devices that could; policies know no rule, and rules no policy. Deciding over
// 16 devices takes about 2 us.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/request.h"

namespace carve::place {

// One device at the moment of the question.
struct Card {
  Device device;
  Bytes free;  // Of the usable memory.
  Share free_share = whole_device;
  Bytes context;  // What one context takes of a slice here; 0: nothing, the reserve pays.
  unsigned tenants = 0;
  unsigned isolated = 0;   // Those of the tenants whose memory is limited.
  bool exclusive = false;  // Its one tenant wants it alone.
  std::string trouble;     // Empty: healthy. "lost from the bus since 12:04".
};

struct Verdict {
  unsigned index = 0;  // Device::index
  bool fits = false;
  std::string sentence;  // "fits, 20.2 GiB would stay free", or the first rule that is broken.
};

struct Placement {
  std::vector<size_t> cards;  // Positions in the snapshot, distinct.
  Bytes memory;               // On each of them: the parts are equal.
  Share share;
};

struct Answer {
  std::optional<Placement> placement;
  std::vector<Verdict> verdicts;  // One for each card, in the snapshot's order.
  std::string summary;            // Where there is no placement: why, in one sentence.
};

// Puts the cards that could serve into the order in which they should be taken.
using Policy = void (*)(std::span<const Card> all, const Request&, std::vector<size_t>& candidates);

Policy binpack();  // The least free first: fills one device before the next, leaves whole ones whole.
Policy spread();   // The most free first.
Policy policy(Strategy);

// For a validated request.
Answer place(std::span<const Card> cards, const Request&, Policy);

}  // namespace carve::place
