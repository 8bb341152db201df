#include "load/process_work.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <thread>

#include "load/kernel.h"

namespace carve::load {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t ns_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

constexpr size_t max_latencies = 1 << 16;  // Per process. If there are more, a uniform sample is kept.
constexpr unsigned kernels_per_graph = 10;

struct Block {
  CUdeviceptr address;
  uint64_t bytes;
};

// One device in one process, with its context, memory and streams.
class Worker {
 public:
  Worker(const Driver& driver, const Options& options, CUdevice device, uint64_t seed, WorkResult& outcome)
      : cu_(driver), options_(options), device_(device), random_(seed), outcome_(&outcome) {
    must(cu_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    enter();
  }
  // The driver frees what is left when the process exits, as for any program.

  void enter() const { must(cu_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

  // Allocates the size given by --allocate in pieces, and throws at the first refusal. With Pattern::fill, a
  // refusal halves the size of the pieces until even the smallest is refused, so that all free memory is
  // held.
  void allocate() {
    uint64_t piece = options_.chunk != 0 ? options_.chunk : options_.allocate;
    uint64_t left = options_.allocate;
    while (left > 0) {
      piece = std::min(piece, left);
      Block block{};
      const CUresult result = grab(piece, block);
      if (result == CUDA_ERROR_OUT_OF_MEMORY && options_.pattern == Pattern::fill) {
        if (piece <= options_.smallest) return;
        piece = std::max(piece / 2, options_.smallest);
        continue;
      }
      if (result != CUDA_SUCCESS) throw Refused(cu_, result, fmt::format("an allocation of {} bytes", piece));
      left -= piece;
    }
  }

  // Allocates and frees pieces of random size, and holds at most the size given by --allocate.
  void churn(Clock::time_point until) {
    while (Clock::now() < until && !told_to_stop) {
      const bool full = held_ >= options_.allocate;
      if (!blocks_.empty() && (full || random_() % 2 == 0)) {
        drop(random_() % blocks_.size());
        continue;
      }
      const uint64_t most =
          std::min(options_.chunk != 0 ? options_.chunk : options_.allocate, options_.allocate - held_);
      Block block{};
      const uint64_t bytes = random_() % most + 1;
      const CUresult result = grab(bytes, block);
      if (result != CUDA_SUCCESS) throw Refused(cu_, result, fmt::format("an allocation of {} bytes", bytes));
      if (options_.touch) touch(block, random_());
    }
  }

  void touch_all() {
    for (size_t i = 0; i < blocks_.size() && !told_to_stop; ++i) touch(blocks_[i], i);
  }

  void load_kernel() {
    must(cu_.cuModuleLoadData(&module_, spin_ptx), "cuModuleLoadData");
    must(cu_.cuModuleGetFunction(&function_, module_, spin_name), "cuModuleGetFunction");
    for (unsigned i = 0; i < options_.streams; ++i)
      must(cu_.cuStreamCreate(&streams_.emplace_back(), CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    iterations_ = 1;
    const double few = once_ms(20'000),
                 // The difference of two runs excludes the cost of the launch.
        many = once_ms(220'000);
    const double per_iteration_ns = std::max(1e-3, (many - few) * 1e6 / 200'000);
    iterations_ = static_cast<uint64_t>(static_cast<double>(*options_.kernel_ns) / per_iteration_ns);
    if (options_.copy != 0) {
      must(cu_.cuMemAllocHost_v2(&host_, options_.copy), "cuMemAllocHost");
      must(cu_.cuMemAlloc_v2(&landing_, options_.copy), "cuMemAlloc for copies");
    }
    if (options_.graphs) build_graph();
  }

  // Launches kernels one after the other, on each stream in turn, until the time limit has passed.
  void kernels(Clock::time_point until) {
    const auto start = Clock::now();
    for (unsigned turn = 0; Clock::now() < until && !told_to_stop; ++turn) {
      const CUstream stream = streams_[turn % streams_.size()];
      const auto begin = Clock::now();
      const unsigned launched = launch(stream);
      if (options_.sync) {
        must(cu_.cuStreamSynchronize(stream), "cuStreamSynchronize");
        completed(launched, ns_since(begin));
      } else {
        unconfirmed_ += launched;
      }
    }
    must(cu_.cuCtxSynchronize(), "cuCtxSynchronize");
    if (unconfirmed_ != 0) completed(unconfirmed_, ns_since(start) / unconfirmed_);
  }

  // Requests arrive by a Poisson process, whether or not the previous request is complete, so the latency
  // includes queueing.
  void requests(Clock::time_point until) {
    std::exponential_distribution<double> gap(options_.request_rate);
    auto arrival = Clock::now();
    for (unsigned turn = 0; !told_to_stop; ++turn) {
      arrival += std::chrono::nanoseconds(static_cast<int64_t>(gap(random_) * 1e9));
      if (arrival >= until) break;
      std::this_thread::sleep_until(arrival);
      const CUstream stream = streams_[turn % streams_.size()];
      const unsigned launched = launch(stream);
      must(cu_.cuStreamSynchronize(stream), "cuStreamSynchronize");
      completed(launched, ns_since(arrival));
    }
  }

  uint64_t most_held() const { return most_held_; }

  void redirect(WorkResult& outcome) { outcome_ = &outcome; }

 private:
  void must(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) throw Refused(cu_, result, what);
  }

  CUresult grab(uint64_t bytes, Block& block) {
    CUresult result = CUDA_ERROR_UNKNOWN;
    size_t pitch = 0;
    switch (options_.kind) {
      case Kind::device: result = cu_.cuMemAlloc_v2(&block.address, bytes); break;
      case Kind::managed: result = cu_.cuMemAllocManaged(&block.address, bytes, CU_MEM_ATTACH_GLOBAL); break;
      case Kind::pitched:
        result = cu_.cuMemAllocPitch_v2(&block.address, &pitch, std::min<uint64_t>(bytes, 4096),
                                        (bytes + 4095) / 4096, 4);
        break;
    }
    if (result != CUDA_SUCCESS) return result;
    block.bytes = bytes;
    blocks_.push_back(block);
    held_ += bytes;
    most_held_ = std::max(most_held_, held_);
    return result;
  }

  void drop(size_t i) {
    must(cu_.cuMemFree_v2(blocks_[i].address), "cuMemFree");
    held_ -= blocks_[i].bytes;
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
  }

  // Writes a different word into each megabyte on the device, and reads the words back with a copy.
  void touch(const Block& block, uint64_t salt) {
    constexpr uint64_t step = 1 << 20;
    std::vector<uint32_t> back(step / 4);
    const uint64_t words = block.bytes / 4 * 4;
    const auto word_at = [&](uint64_t offset) {
      return static_cast<unsigned>((offset / step + 1) * 2654435761u ^ salt);
    };
    for (uint64_t at = 0; at < words; at += step)
      must(cu_.cuMemsetD32_v2(block.address + at, word_at(at), std::min(step, words - at) / 4),
           "cuMemsetD32");
    for (uint64_t at = 0; at < words; at += step) {
      const uint64_t bytes = std::min(step, words - at);
      must(cu_.cuMemcpyDtoH_v2(back.data(), block.address + at, bytes), "cuMemcpyDtoH");
      const auto end = back.begin() + static_cast<ptrdiff_t>(bytes / 4);
      if (std::find_if(back.begin(), end, [&](uint32_t w) { return w != word_at(at); }) != end)
        throw std::runtime_error(
            fmt::format("memory at offset {} of an allocation differs from what was written", at));
      outcome_->bytes_verified += bytes;
    }
    outcome_->bytes_verified += block.bytes - words;  // The last word may be incomplete.
  }

  unsigned launch(CUstream stream) {
    if (options_.copy != 0)
      must(cu_.cuMemcpyHtoDAsync_v2(landing_, host_, options_.copy, stream), "cuMemcpyHtoDAsync");
    if (options_.graphs) {
      must(cu_.cuGraphLaunch(executable_, stream), "cuGraphLaunch");
    } else {
      launch_kernel(stream);
    }
    if (options_.copy != 0)
      must(cu_.cuMemcpyDtoHAsync_v2(host_, landing_, options_.copy, stream), "cuMemcpyDtoHAsync");
    return options_.graphs ? kernels_per_graph : 1;
  }

  unsigned grid() const {
    if (options_.grid != 0) return options_.grid;
    return options_.launch == Launch::cooperative ? 1 : 1024;  // All of a cooperative grid must be resident.
  }

  void launch_kernel(CUstream stream) {
    uint64_t length = *options_.kernel_ns, iterations = iterations_, nowhere = 0;
    void* arguments[] = {&length, &iterations, &nowhere};
    const unsigned block = options_.block;
    switch (options_.launch) {
      case Launch::plain:
        must(cu_.cuLaunchKernel(function_, grid(), 1, 1, block, 1, 1, 0, stream, arguments, nullptr),
             "cuLaunchKernel");
        break;
      case Launch::extended: {
        CUlaunchConfig config{};
        config.gridDimX = grid();
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.blockDimX = block;
        config.hStream = stream;
        must(required(cu_.cuLaunchKernelEx, "cuLaunchKernelEx")(&config, function_, arguments, nullptr),
             "cuLaunchKernelEx");
        break;
      }
      case Launch::cooperative:
        must(cu_.cuLaunchCooperativeKernel(function_, grid(), 1, 1, block, 1, 1, 0, stream, arguments),
             "cuLaunchCooperativeKernel");
        break;
    }
  }

  // Returns the shortest of five runs of the kernel with this many iterations, as measured with CUDA events.
  double once_ms(uint64_t iterations) {
    CUevent begin = nullptr, end = nullptr;
    must(cu_.cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
    must(cu_.cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate");
    float best = INFINITY;
    for (int i = 0; i < 5; ++i) {
      uint64_t length = iterations, count = iterations,
               // The simulator treats an iteration as a nanosecond.
          nowhere = 0;
      void* arguments[] = {&length, &count, &nowhere};
      must(cu_.cuEventRecord(begin, streams_[0]), "cuEventRecord");
      must(cu_.cuLaunchKernel(function_, grid(), 1, 1, options_.block, 1, 1, 0, streams_[0], arguments,
                              nullptr),
           "cuLaunchKernel");
      must(cu_.cuEventRecord(end, streams_[0]), "cuEventRecord");
      must(cu_.cuEventSynchronize(end), "cuEventSynchronize");
      float ms = 0;
      must(cu_.cuEventElapsedTime(&ms, begin, end), "cuEventElapsedTime");
      best = std::min(best, ms);
    }
    must(cu_.cuEventDestroy_v2(begin), "cuEventDestroy");
    must(cu_.cuEventDestroy_v2(end), "cuEventDestroy");
    return best;
  }

  // Builds a chain of kernels, node by node.
  void build_graph() {
    uint64_t length = *options_.kernel_ns, iterations = iterations_, nowhere = 0;
    void* arguments[] = {&length, &iterations, &nowhere};
    CUgraph graph = nullptr;
    must(cu_.cuGraphCreate(&graph, 0), "cuGraphCreate");
    CUgraphNode last = nullptr;
    for (unsigned i = 0; i < kernels_per_graph; ++i) {
      CUDA_KERNEL_NODE_PARAMS node{};
      node.func = function_;
      node.gridDimX = grid();
      node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
      node.blockDimX = options_.block;
      node.kernelParams = arguments;
      CUgraphNode next = nullptr;
      must(required(cu_.cuGraphAddKernelNode_v2, "cuGraphAddKernelNode_v2")(
               &next, graph, i == 0 ? nullptr : &last, i == 0 ? 0 : 1, &node),
           "cuGraphAddKernelNode");
      last = next;
    }
    must(cu_.cuGraphInstantiateWithFlags(&executable_, graph, 0), "cuGraphInstantiateWithFlags");
    must(cu_.cuGraphDestroy(graph), "cuGraphDestroy");
  }

  void completed(uint64_t count, uint64_t latency) {
    outcome_->kernels_completed += count;
    outcome_->kernel_ns += count * *options_.kernel_ns;
    ++measured_;
    if (outcome_->latencies.size() < max_latencies)
      outcome_->latencies.push_back(latency);
    else if (const uint64_t place = random_() % measured_; place < max_latencies)
      outcome_->latencies[place] = latency;
  }

  const Driver& cu_;
  const Options& options_;
  CUdevice device_;
  std::mt19937_64 random_;
  WorkResult* outcome_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<CUstream> streams_;
  std::vector<Block> blocks_;
  uint64_t held_ = 0, most_held_ = 0, iterations_ = 0, unconfirmed_ = 0, measured_ = 0;
  void* host_ = nullptr;
  CUdeviceptr landing_ = 0;
};

std::vector<CUdevice> chosen_devices(const Driver& cu, int wanted) {
  const auto must = [&](CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) throw Refused(cu, result, what);
  };
  int count = 0;
  must(cu.cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<CUdevice> devices;
  const int first = wanted == all_devices ? 0 : wanted, end = wanted == all_devices ? count : wanted + 1;
  for (int i = first; i < end; ++i) must(cu.cuDeviceGet(&devices.emplace_back(), i), "cuDeviceGet");
  if (devices.empty()) throw Refused(cu, CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  return devices;
}

void idle(Clock::time_point until) {
  while (Clock::now() < until && !told_to_stop) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void work_on(const Driver& cu, const Options& options, unsigned process, Meeting& meeting, unsigned& met,
             WorkResult& outcome) {
  const auto devices = chosen_devices(cu, options.device);
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i < devices.size(); ++i)
    workers.push_back(
        std::make_unique<Worker>(cu, options, devices[i], options.seed * 1000 + process * 16 + i, outcome));
  const auto each = [&](auto act) {
    for (auto& worker : workers) {
      worker->enter();
      act(*worker);
    }
  };
  const auto note_memory = [&] {
    outcome.bytes_allocated = 0;
    for (auto& worker : workers) outcome.bytes_allocated += worker->most_held();
  };
  try {
    if (options.kernel_ns) each([](Worker& w) { w.load_kernel(); });
    meeting.meet(++met, options.processes);
    if (options.allocate != 0 && options.pattern != Pattern::churn) each([](Worker& w) { w.allocate(); });
    if (options.touch && options.pattern != Pattern::churn) each([](Worker& w) { w.touch_all(); });
    note_memory();
    meeting.meet(++met, options.processes);

    const auto start = Clock::now();
    const auto until = start + std::chrono::nanoseconds(static_cast<int64_t>(options.seconds * 1e9));
    // Each device has its own thread, so that a slice of two devices uses both at the same time.
    std::vector<std::thread> threads;
    std::vector<WorkResult> parts(workers.size());
    std::vector<std::exception_ptr> failures(workers.size());
    const auto timed = [&](Worker& w) {
      w.enter();
      if (options.pattern == Pattern::churn && options.allocate != 0)
        w.churn(until);
      else if (options.kernel_ns && options.request_rate > 0)
        w.requests(until);
      else if (options.kernel_ns)
        w.kernels(until);
      else
        idle(until);
    };
    if (workers.size() == 1) {
      timed(*workers[0]);
    } else {
      for (size_t i = 0; i < workers.size(); ++i)
        threads.emplace_back([&, i] {
          try {
            workers[i]->redirect(parts[i]);
            timed(*workers[i]);
          } catch (...) {
            failures[i] = std::current_exception();
          }
        });
      for (auto& thread : threads) thread.join();
      for (const WorkResult& part : parts) outcome.add(part);
      for (const auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
    }
    outcome.elapsed_ns = ns_since(start);
    note_memory();
  } catch (...) {
    note_memory();
    throw;
  }
}

}  // namespace

void end_early_on_signals() {
  struct sigaction stop {};
  stop.sa_handler = [](int) { told_to_stop = true; };
  sigaction(SIGINT, &stop, nullptr);
  sigaction(SIGTERM, &stop, nullptr);
}

void Meeting::meet(unsigned n, unsigned processes) {
  ++arrived;
  while (arrived < n * processes && !told_to_stop)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

WorkResult work(const Options& options, unsigned process, Meeting& meeting) {
  WorkResult outcome;
  unsigned met = 0;
  try {
    const Driver cu = open_driver(options.lookup);
    if (const CUresult result = cu.cuInit(0); result != CUDA_SUCCESS) throw Refused(cu, result, "cuInit");
    work_on(cu, options, process, meeting, met, outcome);
  } catch (const Refused& refused) {
    fmt::print(stderr, "carve-load: {}\n", refused.what());
    outcome.error = refused.name;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "carve-load: {}\n", failure.what());
    outcome.error = dynamic_cast<const NoDriver*>(&failure) != nullptr ? "no driver" : failure.what();
  }
  meeting.arrived += meetings - met;
  return outcome;
}

}  // namespace carve::load
