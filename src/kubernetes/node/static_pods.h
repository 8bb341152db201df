// Reports static pods that request slices. kubelet starts them from files on the node, without the webhook,
// the scheduler or quotas, so their containers run without the requested slices. Each such pod gets an event.
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

  // Takes all pods of the node. Reads each mirror pod once, because the metadata does not contain the limits.
  void look(const kubernetes::ObjectsByUid&);

 private:
  void answered(const kubernetes::ObjectMeta&, const kubernetes::ApiAnswer&);

  kubernetes::ApiClient& client_;
  const std::function<void(const EventNote&)> note_;
  // By uid. Null after the pod has been read.
  std::map<std::string, std::unique_ptr<kubernetes::ApiCall>> seen_;
};

}  // namespace carve::kubernetes::node
