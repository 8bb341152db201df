// Stream memory operations through the real library.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim/libcuda/stream_fixture.h"

namespace carve::sim {
namespace {

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }
uint32_t load(uint32_t* word) { return std::atomic_ref(*word).load(); }

TEST_F(DriverTest, the_attributes_report_stream_memory_operations_as_supported) {
  EXPECT_EQ(0, run([] {
              begin();
              for (int a : {92, 93, 94, 122, 123}) {
                int value = 0;
                OK(CU(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(a), 0));
                REQUIRE(value == 1);
              }
            }));
}

TEST_F(DriverTest, a_stream_writes_a_word_only_after_its_kernel) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              uint32_t* word = pinned();
              const StreamBlocker blocker;
              blocker.close(s);
              OK(launch(f, s, 30 * ms));
              OK(CU(cuStreamWriteValue32_v2)(s, address(word), 7, 0));
              OK(CU(cuStreamWriteValue64)(s, address(word + 2), 1ull << 40, 0));
              usleep(50'000);
              REQUIRE(load(word) == 0);
              blocker.open();
              while (load(word) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              REQUIRE(load(word) == 7);  // The word arrived without any synchronising call.
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(word[3] == 1u << 8);
            }));
}

TEST_F(DriverTest, a_stream_waits_for_a_word_of_the_host_with_little_processor_time) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              uint32_t* word = pinned();
              OK(CU(cuStreamWaitValue32)(s, address(word), 5, CU_STREAM_WAIT_VALUE_GEQ));
              rusage before, after;
              getrusage(RUSAGE_SELF, &before);
              std::this_thread::sleep_for(std::chrono::milliseconds(400));
              getrusage(RUSAGE_SELF, &after);
              const auto used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1'000'000 +
                                after.ru_utime.tv_usec - before.ru_utime.tv_usec;
              REQUIRE(used < 100'000);  // At most a quarter of the time; in practice about a hundredth.
              REQUIRE(CU(cuStreamQuery)(s) == CUDA_ERROR_NOT_READY);
              std::atomic_ref(*word).store(6);
              OK(CU(cuStreamSynchronize)(s));
            }));
}

TEST_F(DriverTest, streams_synchronise_through_device_memory_in_both_directions) {
  EXPECT_EQ(0, run([] {
              begin();
              const CUfunction f = spin();
              CUstream s = nullptr, t = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              OK(CU(cuStreamCreate)(&t, CU_STREAM_NON_BLOCKING));
              CUdeviceptr flag = 0;
              OK(CU(cuMemAlloc_v2)(&flag, 64));
              OK(CU(cuMemsetD8_v2)(flag, 0, 64));
              CUevent begun, ended;
              OK(CU(cuEventCreate)(&begun, 0));
              OK(CU(cuEventCreate)(&ended, 0));
              OK(CU(cuStreamWaitValue64)(t, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
              OK(CU(cuEventRecord)(begun, t));
              OK(CU(cuStreamWriteValue32)(t, flag + 8, 1, 0));
              OK(launch(f, s, 20 * ms));
              OK(CU(cuStreamWriteValue64)(s, flag, 1, 0));
              OK(CU(cuStreamWaitValue32)(s, flag + 8, 1, CU_STREAM_WAIT_VALUE_AND));
              OK(CU(cuEventRecord)(ended, s));
              OK(CU(cuStreamSynchronize)(s));
              OK(CU(cuStreamSynchronize)(t));
              float between = -1;
              OK(CU(cuEventElapsedTime)(&between, begun, ended));
              REQUIRE(between >= 0);
            }));
}

TEST_F(DriverTest, a_batch_is_performed_in_order) {
  EXPECT_EQ(0, run([] {
              begin();
              CUstream s = nullptr;
              OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
              uint32_t* word = pinned();
              CUstreamBatchMemOpParams ops[3] = {};
              ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
              ops[0].writeValue.address = address(word);
              ops[0].writeValue.value = 1;
              ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
              ops[1].waitValue.address = address(word + 1);
              ops[1].waitValue.value = 0xffffff00;
              ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_NOR;
              ops[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
              ops[2].writeValue.address = address(word + 2);
              ops[2].writeValue.value = 3;
              word[1] = 0xff;
              OK(CU(cuStreamBatchMemOp_v2)(s, 3, ops, 0));
              EVENTUALLY(load(word) == 1);
              usleep(20'000);
              REQUIRE(load(word + 2) == 0);
              std::atomic_ref(word[1]).store(0x7f);
              OK(CU(cuStreamSynchronize)(s));
              REQUIRE(load(word + 2) == 3);
            }));
}

TEST_F(DriverTest, memory_that_no_stream_may_access_is_rejected) {
  EXPECT_EQ(0, run([] {
              begin();
              uint32_t plain[4] = {}, *word = pinned();
              REQUIRE(CU(cuStreamWriteValue32)(nullptr, address(plain), 1, 0) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuStreamWaitValue64)(nullptr, address(word) + 4, 1, 0) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuStreamWaitValue32)(nullptr, address(word), 1, 4) == CUDA_ERROR_INVALID_VALUE);
              REQUIRE(CU(cuStreamWaitValue32)(nullptr, address(word), 1, CU_STREAM_WAIT_VALUE_FLUSH) ==
                      CUDA_ERROR_NOT_SUPPORTED);
              REQUIRE(CU(cuStreamBatchMemOp_v2)(nullptr, 0, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
              OK(CU(cuMemHostRegister_v2)(plain, sizeof plain, 0));
              OK(CU(cuStreamWriteValue32_ptsz)(nullptr, address(plain), 9, 0));
              OK(CU(cuCtxSynchronize)());
              REQUIRE(plain[0] == 9);
            }));
}

}  // namespace
}  // namespace carve::sim
