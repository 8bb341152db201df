// Measures how long a controller takes to read the usage records of 500 and of 5,000 nodes over TLS on loopback,
// how much CPU time and memory that takes, and how many bytes a node sends per hour when nothing begins or ends.
// Each node has 200 ended records and 16 open ones. All nodes answer from one thread of this program, so the
// time includes the servers' work.
//   bench_nodes [NODES...]
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <filesystem>
#include <thread>

#include "controller/billing/usage_copy.h"
#include "controller/cluster/cluster_usage.h"
#include "http/server.h"
#include "kubernetes/api/client/curl_client.h"
#include "kubernetes/api/client/testing/api_server_socket.h"
#include "os/tcp.h"
#include "tls/certificates/certificate.h"
#include "tls/tls.h"
#include "wire/api/json.h"

namespace {

using namespace carve;
using namespace carve::controller;
using kubernetes::second_ns;

constexpr uint64_t ended_records = 200, open_records = 16;
constexpr size_t parallel_reads = 50;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns the records of a node. They began an hour ago, so their pods need not be known any more.
std::vector<ledger::UsageRecord> records() {
  std::vector<ledger::UsageRecord> out;
  const int64_t hour = 3600 * second_ns, begin = os::utc_ns() - hour;
  for (uint64_t id = 1; id <= ended_records + open_records; ++id) {
    ledger::UsageRecord record;
    record.id = id;
    record.slice.name = fmt::format("k{}", id);
    record.slice.account = "research";
    record.slice.labels = {
        {"app", "llm-server"}, {"team", "research"}, {"app.kubernetes.io/instance", "llm-7b"}};
    record.slice.holder.pod = PodContainer{"research", fmt::format("llm-server-7d8f9c6b5-{:05}", id),
                                           fmt::format("5d2b2a34-0000-4000-8000-{:012}", id), "main"};
    SlicePart part{
        .memory = 4096_MiB, .share = {3000}, .usable = 22731_MiB, .native = 23028_MiB, .model = "NVIDIA A10"};
    part.device.bytes[0] = static_cast<uint8_t>(id % 8);
    record.slice.parts = {part};
    const auto offset = static_cast<int64_t>(id) * second_ns;
    record.from = {begin + offset, "5d2b2a34-0000-4000-8000-000000000000", hour + offset};
    if (id <= ended_records)
      record.to = ledger::Stamp{begin + 2 * offset, record.from.boot_id, hour + 2 * offset};
    record.busy_ns = 1'000'000'000;
    record.peak_bytes = 3'000'000'000;
    out.push_back(std::move(record));
  }
  return out;
}

// The API server and the nodes, in a thread of their own.
class ServedCluster {
 public:
  explicit ServedCluster(size_t nodes) : api_(loop_, fake_), records_(records()) {
    const auto ca = tls::make_ca(os::utc_ns() / os::second, 30);
    const auto serving = tls::make_serving(*ca, {"localhost"}, os::utc_ns() / os::second, 30);
    identity_ = std::make_unique<tls::Identity>(
        *tls::Identity::of_texts(serving->certificate_pem, serving->key_pem, "bench"));
    os::TcpAddress address{"127.0.0.1", 0};
    auto listener = os::listen_at(address);
    server_.emplace(loop_, std::move(*listener),
                    http::Server::Hooks{
                        .handle = [this](const http::Request& r, const http::Caller&) { return answer(r); },
                        .refuse =
                            [](unsigned status, const std::string& text) {
                              return http::Response{status, "text/plain", text};
                            },
                        .transport = [this](os::Fd fd) { return identity_->accept(std::move(fd)); }});
    const kubernetes::NodeReader reader{.address = os::text(address),
                                        .key = *tls::key_pin(serving->certificate_pem)};
    for (size_t i = 0; i < nodes; ++i)
      fake_.put("/api/v1/nodes",
                {{"metadata",
                  {{"name", fmt::format("n{}", i)},
                   {"annotations", {{kubernetes::reader_annotation, api::write(reader)}}}}}});
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServedCluster() {
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }
  uint16_t port() const { return api_.port(); }

 private:
  http::Response answer(const http::Request& request) {
    ledger::UsagePage page;
    page.query = request.query;
    const std::string query = request.query;
    if (query.starts_with("after=")) {
      const uint64_t after = std::stoull(query.substr(6));
      for (const auto& record : records_)
        if (record.id > after && page.records.size() < max_records_per_page) page.records.push_back(record);
    } else {
      for (size_t at = query.find('='); at != std::string::npos; at = query.find(',', at + 1))
        page.records.push_back(records_.at(std::stoull(query.substr(at + 1)) - 1));
    }
    return {200, "application/json", api::write(page)};
  }

  os::Loop loop_;
  kubernetes::ApiServerFake fake_;
  kubernetes::ApiServerSocket api_;
  const std::vector<ledger::UsageRecord> records_;
  std::unique_ptr<tls::Identity> identity_;
  std::optional<http::Server> server_;
  std::thread thread_;
};

// The store, in the thread of the reader.
class Books final : public UsageBooks {
 public:
  Books(os::Loop& loop, UsageStore& store) : loop_(loop), store_(store) {}
  void find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)> found) override {
    loop_.post([this, node, found] { found(store_.position(node)); });
  }
  void write(const std::string& node, CopyWrite write, std::function<void(Outcome<void>)> done) override {
    loop_.post(
        [this, node, write = std::move(write), done] { done(write_copy(store_, node, write, nullptr)); });
  }

 private:
  os::Loop& loop_;
  UsageStore& store_;
};

struct Figures {
  double first_s = 0, first_cpu_s = 0, again_s = 0, again_cpu_s = 0, kib_per_read = 0;
};

Figures measure(size_t nodes, UsageStore& store) {
  ServedCluster cluster(nodes);
  os::Loop loop;
  kubernetes::CurlApiClient client(loop, {.server = fmt::format("http://127.0.0.1:{}", cluster.port())});
  Books books(loop, store);
  ClusterUsage usage(
      client, books,
      {.account = {},
       .schedule = {.interval_ns = 2 * second_ns, .max_running = parallel_reads},
       .local_nodes = {},
       .seed = 1},
      {.connect =
           [&](const ClusterNode& node, const std::string& token) {
             return std::make_unique<kubernetes::CurlApiClient>(
                 loop,
                 kubernetes::Connection{
                     .server = "https://" + node.reader.address, .key_pin = node.reader.key, .token = token},
                 kubernetes::CurlClientSettings{.answer_bytes = max_page_bytes});
           },
       .now =
           [] {
             return ledger::Stamp{os::utc_ns(), "controller", os::monotonic_ns()};
           },
       .note = [](const std::string& node,
                  const ChangeEvent& event) { fmt::print(stderr, "{}: {}\n", node, event.message); }});
  Figures out;
  // A node is due again 2 s after its read, so no node is read twice before all were read once.
  uint64_t target = 0;
  loop.every(os::millisecond, [&] {
    if (usage.figures().reads >= target) loop.stop();
  });
  const auto run_until = [&](uint64_t reads) {
    target = reads;
    loop.run();
  };
  int64_t begin = os::monotonic_ns();
  double cpu = cpu_seconds();
  run_until(nodes);
  out.first_s = static_cast<double>(os::monotonic_ns() - begin) / 1e9;
  out.first_cpu_s = cpu_seconds() - cpu;
  // The next reads find nothing new.
  const auto before = usage.figures();
  begin = os::monotonic_ns();
  cpu = cpu_seconds();
  run_until(before.reads + nodes);
  const auto after = usage.figures();
  out.again_s = static_cast<double>(os::monotonic_ns() - begin) / 1e9;
  out.again_cpu_s = cpu_seconds() - cpu;
  out.kib_per_read = static_cast<double>(after.bytes - before.bytes) /
                     static_cast<double>(after.reads - before.reads) / 1024;
  if (after.failed_reads != 0) fmt::print(stderr, "{} reads failed\n", after.failed_reads);
  return out;
}

void row(const std::string& name, double value, const char* unit, const char* behind) {
  fmt::print(
      R"({{"name":"nodes.{}","value":{:.3f},"unit":"{}","goal":null,"better":"lower","native":null,"spread":0,"where":"loopback"}}{})",
      name, value, unit, behind);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {500, 5000};
  fmt::print("[");
  for (const size_t nodes : sizes) {
    std::string folder = "/var/tmp/carve-nodes-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return 1;
    auto opened = UsageStore::open(folder + "/usage.db", 1);
    if (!opened) return 1;
    const Figures f = measure(nodes, opened->store);
    std::filesystem::remove_all(folder);
    const std::string of = fmt::format("{}", nodes);
    row(of + ".first", f.first_s, "s", ",");
    row(of + ".first_cpu", f.first_cpu_s, "s", ",");
    row(of + ".again", f.again_s, "s", ",");
    row(of + ".again_cpu", f.again_cpu_s, "s", ",");
    row(of + ".per_node_hour", f.kib_per_read * 60, "KiB", ",");
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  row("memory", static_cast<double>(usage.ru_maxrss) / 1024, "MiB", "]\n");
}
