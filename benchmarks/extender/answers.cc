// Measures the coordinator's own work without sockets, with 5,000 nodes of 8 devices and 50,000 pods in the
// cache: the responses to requests that name all nodes; the cache after a take-over and after a repeated
// list; and one page of a list, of which both read 110. Runs in one thread. CARVE_EXTENDER_PODS changes the
// number of pods.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/coordinator/extender/extender.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace {

using namespace carve;
using namespace carve::kubernetes::coordinator;
using namespace carve::kubernetes::coordinator::testing;

constexpr unsigned nodes = 5'000, devices = 8, page_items = 500;
constexpr int many_rounds = 25, few_rounds = 5;

// Returns this thread's processor time, which other work on a shared machine does not affect.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string node_name(unsigned node) { return fmt::format("gpu-node-{:04}.example.internal", node); }

kubernetes::ObjectMeta placed_pod(unsigned number) {
  const unsigned node = number % nodes, device = number / nodes % devices;
  kubernetes::PodSlices slices{.node = node_name(node), .containers = {}};
  slices.containers["c"] = {.parts = {{device_uuid(node, device), 2_GiB, Share{500}}},
                            .isolation = Isolation::memory_and_compute,
                            .policy = Policy::fixed_share};
  kubernetes::ObjectMeta out = bound(pod_object(fmt::format("standing-{}", number), 2_GiB, 500), slices);
  out.resource_version = std::to_string(1'000 + number);
  return out;
}

// The request as Go writes ExtenderArgs: the whole pod, then the node names.
std::string question(const kubernetes::ObjectMeta& pod) {
  std::string names;
  for (unsigned node = 0; node < nodes; ++node)
    names += fmt::format("{}\"{}\"", node == 0 ? "" : ",", node_name(node));
  std::string annotations;
  for (const auto& [key, text] : pod.annotations)
    annotations +=
        fmt::format("{}{}:{}", annotations.empty() ? "" : ",", api::quoted(key), api::quoted(text));
  return fmt::format(
      R"({{"Pod":{{"metadata":{{"name":"{}","namespace":"{}","uid":"{}","annotations":{{{}}}}},)"
      R"("spec":{{"containers":[{{"name":"c","image":"i","resources":{{"limits":{{"carve.dev/slot":"1"}}}}}}],)"
      R"("restartPolicy":"Always","schedulerName":"carve-scheduler"}},"status":{{"phase":"Pending"}}}},)"
      R"("Nodes":null,"NodeNames":[{}]}})",
      pod.name, pod.name_space, pod.uid, annotations, names);
}

std::string page() {
  std::string items;
  for (unsigned i = 0; i < page_items; ++i) {
    const kubernetes::ObjectMeta pod = placed_pod(i);
    std::string annotations;
    for (const auto& [key, text] : pod.annotations)
      annotations +=
          fmt::format("{}{}:{}", annotations.empty() ? "" : ",", api::quoted(key), api::quoted(text));
    items += fmt::format(
        R"({}{{"metadata":{{"name":"{}","namespace":"a","uid":"{}","resourceVersion":"{}",)"
        R"("creationTimestamp":"2026-01-31T10:20:30Z","labels":{{"carve.dev/sliced":"true"}},)"
        R"("annotations":{{{}}},"managedFields":[{{"manager":"m","operation":"Update","apiVersion":"v1",)"
        R"("fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},)"
        R"("f:carve.dev/request":{{}}}}}},"f:spec":{{"f:containers":{{"k:{{\"name\":\"c\"}}":{{".":{{}},)"
        R"("f:image":{{}},"f:name":{{}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}}}}}}}}}}}}}}]}}}})",
        i == 0 ? "" : ",", pod.name, pod.uid, 1000 + i, annotations);
  }
  return fmt::format(R"({{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",)"
                     R"("metadata":{{"resourceVersion":"99"}},"items":[{}]}})",
                     items);
}

void print(const char* name, std::vector<double> runs, const char* behind) {
  std::ranges::sort(runs);
  const double median = runs[runs.size() / 2];
  fmt::print(
      R"({{"name":"extender.{}","value":{:.4f},"unit":"ms","goal":null,"better":"lower","native":null,"spread":{:.3f},"where":"cache"}}{})",
      name, median, (runs.back() - runs.front()) / median, behind);
}

template <class Act>
std::vector<double> measured(int rounds, Act act) {
  std::vector<double> out;
  for (int i = 0; i < rounds; ++i) {
    const double begin = seconds();
    act();
    out.push_back(1e3 * (seconds() - begin));
  }
  return out;
}

kubernetes::ObjectsByUid all_nodes() {
  kubernetes::ObjectsByUid out;
  for (unsigned node = 0; node < nodes; ++node) {
    kubernetes::ObjectMeta object = node_object(node_name(node), a10_devices(node, devices));
    object.resource_version = std::to_string(1 + node);
    out.emplace(object.uid, object);
  }
  return out;
}

kubernetes::ObjectsByUid all_pods() {
  const char* const wanted = std::getenv("CARVE_EXTENDER_PODS");
  const unsigned pods = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 50'000;
  kubernetes::ObjectsByUid out;
  for (unsigned number = 0; number < pods; ++number) {
    const kubernetes::ObjectMeta object = placed_pod(number);
    out.emplace(object.uid, object);
  }
  return out;
}

// Prints the cost of a take-over in addition to reading the pages, and the cost of a repeated list.
void print_lists(Cache& cache) {
  const kubernetes::ObjectsByUid fleet = all_nodes(), placed = all_pods();
  const auto replace = [&] {
    cache.replace_nodes(fleet);
    cache.replace_pods(placed);
  };
  print("books50000.first", measured(1, replace), ",");
  print("books50000.again", measured(few_rounds, replace), ",");
}

}  // namespace

int main() {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client(time, server, 1);
  Cache cache(Strategy::binpack);
  Binder binder(client, cache);
  Extender extender(cache, binder,
                    {.fence = [] { return std::string(); },
                     .preempts = [] { return false; },
                     .not_ready = [] { return std::string(); },
                     .now = [&] { return client.now(); },
                     .answered = [](std::string_view, kubernetes::Nanoseconds, const std::string&) {},
                     .fits = [](const std::string&) {},
                     .waits = [](const kubernetes::ObjectMeta&, std::span<const std::string_view>,
                                 const std::function<std::string()>&) {}});
  fmt::print("[");
  print_lists(cache);
  const auto print_answers = [&](const char* name, const char* path, const kubernetes::ObjectMeta& pod) {
    const http::Request request{.method = "POST", .path = path, .query = "", .body = question(pod)};
    const auto ask = [&] {
      const http::Response answer = extender.handle(request);
      if (answer.status != 200 || std::get<std::string>(answer.content).size() < nodes) std::abort();
    };
    print(name, measured(many_rounds, ask), ",");
  };
  print_answers("filter5000", "/filter", pod_object("fits", 4_GiB, 3000));
  print_answers("filter5000.refused", "/filter", pod_object("too-large", 40_GiB, 3000));
  print_answers("prioritize5000", "/prioritize", pod_object("fits", 4_GiB, 3000));
  const std::string list = page();
  const auto read_page = [&] {
    if (kubernetes::read_list_page(list)->items.size() != page_items) std::abort();
  };
  print("page500", measured(many_rounds, read_page), "]\n");
}
