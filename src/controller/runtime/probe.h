// Readiness probes of replicas on this machine: a TCP connection to 127.0.0.1:PORT, or GET over HTTP/1.1,
// which succeeds with a status of 2xx or 3xx. Only the status line is read, so the rest of an answer can be
// of any length. Any number of probes run at once on the loop, and none blocks it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/failure.h"
#include "os/loop.h"

namespace carve::controller {

inline constexpr size_t max_probe_path_bytes = 1024;
inline constexpr size_t max_status_line_bytes = 512;

struct ProbeTarget {
  uint16_t port = 0;
  std::optional<std::string> path = {};  // Of httpGet; absent: a connection is enough.
};

// Returns the first rule that the target violates (invalid_argument): a path begins with '/' and has visible
// ASCII characters only.
Outcome<void> check(const ProbeTarget&);

struct ProbeResult {
  bool succeeded = false;
  std::string sentence;  // What happened: "port 21001 answered 503 to GET /healthz".
};

// Returns the status of an HTTP status line without its end, "HTTP/1.1 200 OK"; no value for other text.
std::optional<unsigned> read_status_line(std::string_view line);

class Prober {
 public:
  explicit Prober(os::Loop& loop);
  ~Prober();  // Probes that are under way are given up; their callbacks are not called.
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Begins a probe and returns its number. The target is checked. `done` is called once, from the loop, not
  // before begin() has returned; it may begin other probes.
  uint64_t begin(const ProbeTarget& target, int64_t timeout_ns, std::function<void(const ProbeResult&)> done);

  // Gives the probe up: its callback is not called. A number whose probe has ended is ignored.
  void cancel(uint64_t number);

  size_t under_way() const { return probes_.size(); }

 private:
  struct Probe;

  void advance(uint64_t number, uint32_t events);
  void send_request(uint64_t number, Probe& probe);
  void read_answer(uint64_t number, Probe& probe);
  void end(uint64_t number, bool succeeded, std::string what);

  os::Loop& loop_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<Probe>> probes_;
  std::shared_ptr<Prober*> self_ = std::make_shared<Prober*>(this);  // Timers of the loop outlive a probe.
};

}  // namespace carve::controller
