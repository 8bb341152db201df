// An invoice is a sum over usage records. A line covers one slice on one device for one interval with
// constant terms and one tariff:
//
//   GPU-hours = seconds / 3600 x the model's GPU-hour units x ratio
//   ratio     = max(compute share / 100 %, memory quota / usable memory of the device)
//
// The ratio counts the granted amounts, not the used ones. It is 1 for an exclusive slice, and only the
// memory counts if the slice has no compute share. 1 hour on an A10 (10 units, 22731 MiB usable) with 30 %
// and 4096 MiB is 1 x 10 x max(0.30, 0.1802) = 3.000000 GPU-hours.
//
// Exactness. All sums are integers. GPU-hours and amounts are rounded only once, half to even at six
// decimals: a line is the rounded sum of its slice part up to its end minus the rounded sum up to its start.
// Therefore, when an interval is split into lines (at changes of terms, at tariff dates, at the edges of a
// window), these add up to the line of the whole interval, and the invoices of adjacent windows add up to the
// invoice of both. A line differs from its own formula by less than 0.000001.
//
// Time. A time in a record is computed as the time of its grant in UTC plus the durations since then
// (ledger::duration_ns()), so a clock step within one boot changes nothing. When a record has ended, its
// whole duration is raised to the minimum and rounded up to the granularity of the tariff at its end, and the
// added time is in the last line. A record that has not ended counts until now.
//
// An invalid record has no line. It is listed in Invoice::refused with the reason, and all other records are
// billed. Time without a price has a line with the reason, and the total includes its seconds.
#pragma once

#include <optional>
#include <span>

#include "bill/tariff.h"
#include "ledger/usage_record.h"

namespace carve::bill {

inline constexpr Bytes max_usable{uint64_t{1} << 50};  // For one device.

// A device as it was when the slice was granted.
struct BilledDevice {
  Uuid uuid;
  std::string model;  // As the driver reports it: "NVIDIA A10".
  Bytes usable;

  friend bool operator==(const BilledDevice&, const BilledDevice&) = default;
};

// A usage record with the data that the controller adds. An agent numbers its records, so node and id
// together are unique.
struct Usage {
  std::string node;
  ledger::UsageRecord record;
  std::string account;
  std::string name_space;
  std::string kind;      // Kind of the workload: "service", "job".
  std::string name;      // Name of the workload.
  std::string queue;     // Empty if none.
  bool prepaid = false;  // Its queue is prepaid: the price is 0.
  std::vector<BilledDevice> devices;

  friend bool operator==(const Usage&, const Usage&) = default;
};

// The half-open interval [from, to) in UTC nanoseconds.
struct Window {
  Ns from = 0;
  Ns to = INT64_MAX;
};

enum class RatioBy : uint8_t { whole_device, share, memory };
enum class Unpriced : uint8_t {
  no,
  no_tariff,  // No tariff was valid; the GPU-hours use Carve's default units.
  no_units,   // The device's model has no units.
};

struct Line {
  const Usage* usage = nullptr;  // Points into the records of the invoice.
  BilledDevice device;
  Ns from = 0;  // In UTC.
  Ns to = 0;
  bool open = false;  // The record has not ended, and the line ends now.
  Ns billed = 0;      // Nanoseconds: to - from, plus any rounding of the record's end.
  Bytes memory;       // Granted.
  Share share;        // Granted; 0 means no share.
  RatioBy ratio_by = RatioBy::memory;
  Unpriced unpriced = Unpriced::no;
  Millionths units;  // Per hour; 0 if unpriced.
  Millionths price;  // Per GPU-hour; 0 if unpriced or prepaid.
  Millionths gpu_hours;
  Millionths amount;
};

struct RefusedUsage {
  const Usage* usage = nullptr;
  std::string message;
};

struct Total {
  __int128 gpu_hours = 0;    // Millionths.
  __int128 amount = 0;       // Millionths.
  __int128 unpriced_ns = 0;  // Billed time without a price.

  friend bool operator==(const Total&, const Total&) = default;
};

struct Invoice {
  std::string currency;     // Empty if there are no tariffs.
  std::vector<Line> lines;  // Ordered by node, record, slice part and time.
  std::vector<RefusedUsage> refused;
};

// Returns the invoice for the part of the records inside the window. The order of the records does not
// matter. Identical records count as one. Records with the same node and id but different contents are all
// rejected. The lines point into `records`.
Invoice invoice(std::span<const Usage> records, const Tariffs&, const Window&, const ledger::Stamp& now);

Total total(std::span<const Line>);

enum class GroupBy : uint8_t { account, queue, workload, device };  // workload is "NAMESPACE/KIND/NAME".
std::map<std::string, Total> totals(std::span<const Line>, GroupBy);

// The smallest slice that could be requested and would have covered a slice's usage, in whole percent of its
// device's compute and whole MiB.
struct SmallerSlice {
  Bytes memory;
  Share share;  // 0 if none was granted.
  Millionths gpu_hours;
  Millionths amount;
};

// Returns the slice for the line's interval from the slice's busy time and its peak memory. No amount exceeds
// the granted one. It has 0 GPU-hours if the model has no units.
SmallerSlice smaller_slice(const Line&, Ns busy, Bytes peak);
// The minimums that jobs may request (requirements S4-8). A context takes about that much memory.
inline constexpr Share min_smaller_share{500};
inline constexpr Bytes min_smaller_memory = 256_MiB;

// Returns the formula with the line's numbers: "1.000000 h x 10 x max(30/100 = 0.300000, 4096/22731 =
// 0.180194) = 3.000000". A duration that was rounded up is shown as "0.016667 h (0.005000 h, plus 0.011667 h
// for the minimum and granularity)".
std::string explain(const Line&);

}  // namespace carve::bill
