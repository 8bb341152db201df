// A network and a clock for simulations: SimulatedApiClient calls an ApiServerFake under virtual time.
// Messages in both directions are delayed at random but stay in order within a stream; a seed determines the
// delays. Several clients may share one clock and one server.
#pragma once

#include <map>
#include <random>
#include <set>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/testing/api_server_fake.h"

namespace carve::kubernetes {

class VirtualTime {
 public:
  Nanoseconds now() const { return now_; }
  void at(Nanoseconds when, std::function<void()> act) { due_.emplace(std::max(when, now_), std::move(act)); }
  // Runs the tasks that are due until `end`. Tasks due at the same moment run in the order in which they were
  // added.
  void run_until(Nanoseconds end);
  void run_for(Nanoseconds length) { run_until(now_ + length); }

 private:
  Nanoseconds now_ = 0;
  std::multimap<Nanoseconds, std::function<void()>> due_;
};

class SimulatedApiClient final : public ApiClient {
 public:
  SimulatedApiClient(VirtualTime& time, ApiServerFake& server, uint64_t seed)
      : time_(time), server_(server), random_(seed) {}
  ~SimulatedApiClient() override;

  std::unique_ptr<ApiCall> send(ApiRequest, Answered) override;
  std::unique_ptr<ApiCall> watch(ApiRequest, Lines) override;
  std::unique_ptr<ApiCall> after(Nanoseconds, std::function<void()>) override;
  Nanoseconds now() const override { return time_.now(); }

  // Loses all connections. New ones are also lost until the next call.
  void set_connected(bool is_connected);
  // Forgets all calls, like a process that is killed: no call gets a response. Requests that were already
  // sent arrive.
  void forget_calls();

  std::string token;
  Nanoseconds max_delay_ns = 50'000'000;  // One-way delay of a message.

 private:
  class Exchange;
  friend class Exchange;

  std::unique_ptr<ApiCall> start(ApiRequest, Lines, bool is_watch);
  Nanoseconds delay();

  VirtualTime& time_;
  ApiServerFake& server_;
  std::mt19937_64 random_;
  bool is_connected_ = true;
  std::set<std::shared_ptr<Exchange>> exchanges_;
};

}  // namespace carve::kubernetes
