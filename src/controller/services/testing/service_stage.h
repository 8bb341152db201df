// A service reconciler over a database, a simulated machine and a clock.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "controller/services/service_reconciler.h"
#include "controller/services/testing/effects_fake.h"
#include "controller/services/testing/store_stage.h"
#include "wire/api/json.h"

namespace carve::controller {

struct ServiceStage : StoreStage {
  EffectsFake machine;
  std::optional<ServiceReconciler> reconciler;
  const ObjectKey key{objects::Kind::service, "default", "a"};

  ServiceStage() {
    machine.now = 1'700'000'000 * workload::second_ns;
    restart();
  }

  // Restarts the controller; the database and the machine keep their state.
  void restart() {
    reconciler.reset();
    open();
    reconciler.emplace(*objects, std::move(*WorkloadRecords::read(*store)), machine);
  }
  void apply(const objects::ServiceSpec& spec) {
    if (!objects->find(key))
      ASSERT_TRUE(objects->add({.key = key, .account = "root", .uid = "u1", .spec = spec}));
    else
      ASSERT_TRUE(
          objects->update(key, [&](Object& o) -> Outcome<void> { return o.spec = spec, Outcome<void>(); }));
  }
  void remove() {
    ASSERT_TRUE(
        objects->update(key, [](Object& o) -> Outcome<void> { return o.is_ending = true, Outcome<void>(); }));
  }
  // Runs turns until nothing changes for a while. The clock advances by one second per turn.
  void settle(int turns = 60) {
    for (int i = 0; i < turns; ++i) {
      reconciler->reconcile(machine.now);
      machine.now += workload::second_ns;
    }
  }
  objects::ServiceStatus status() {
    const auto object = objects->find(key);
    return object ? *api::read<objects::ServiceStatus>(object->status.json(), api::Reading::lenient)
                  : objects::ServiceStatus{};
  }
  std::vector<std::string> slices() {
    std::vector<std::string> out;
    for (const auto& [name, slice] : machine.live) out.push_back(name);
    return out;
  }
};

// Returns a service with a port whose replicas have 20 % of a device.
inline objects::ServiceSpec sample_spec(uint32_t replicas, std::string command = "serve",
                                        std::string memory = "4GiB") {
  return {.replicas = replicas,
          .gpu = objects::Gpu{.memory = std::move(memory), .share = "20%"},
          .run = {.command = {std::move(command)}},
          .port = 8000};
}

}  // namespace carve::controller
