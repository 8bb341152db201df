// Reports static pods that request slices. Kubelet starts them from files of the node: no webhook, scheduler
// or quota sees them, so their containers run without the slices that they request. Each gets an event.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"
#include "kubernetes/node/rules/slice_events.h"

namespace carve::kubernetes::node {

class StaticPods {
 public:
  StaticPods(kubernetes::ApiClient& client, std::function<void(const EventNote&)> note)
      : client_(client), note_(std::move(note)) {}

  // Takes all pods of the node. It reads each mirror pod once, because the metadata does not have the limits.
  void look(const kubernetes::ObjectsByUid&);

 private:
  void answered(const kubernetes::ObjectMeta&, const kubernetes::ApiAnswer&);

  kubernetes::ApiClient& client_;
  const std::function<void(const EventNote&)> note_;
  // By uid. Null after the pod was read.
  std::map<std::string, std::unique_ptr<kubernetes::ApiCall>> seen_;
};

}  // namespace carve::kubernetes::node
