// The kernel that carve-load launches. On a GPU, it multiplies and adds `iterations` times. Unlike waiting
// for a clock, this makes no progress while another slice's context has the engine. The simulator does not
// execute the kernel, but uses its first argument, in nanoseconds, as its duration. The kernel is written for
// the oldest architecture for which current drivers still compile.
#pragma once

namespace carve::load {

inline constexpr const char* spin_name = "carve_spin";

inline constexpr const char* spin_ptx = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry carve_spin(
  .param .u64 nanoseconds,
  .param .u64 iterations,
  .param .u64 result)
{
  .reg .pred %end;
  .reg .u64 %left, %value, %out;

  ld.param.u64 %left, [iterations];
  mov.u64 %value, 1;
turn:
  setp.eq.u64 %end, %left, 0;
  @%end bra done;
  mad.lo.u64 %value, %value, 6364136223846793005, 1442695040888963407;
  sub.u64 %left, %left, 1;
  bra turn;
done:
  ld.param.u64 %out, [result];
  setp.eq.u64 %end, %out, 0;
  @%end bra leave;
  cvta.to.global.u64 %out, %out;
  st.global.u64 [%out], %value;
leave:
  ret;
}
)";

}  // namespace carve::load
