// How a process attaches to its slice: one request and one reply over a SOCK_SEQPACKET unix socket, then the
// connection closes. The request contains no name. The agent gets the peer's identity from the kernel (pidfd,
// cgroup) and replies with three descriptors: the slice's Control, its Report and the Heartbeat. This takes
// one round trip of about 60 us, once per process, in cuInit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carve::shm {

inline constexpr uint32_t attach_magic = 0x41565243;  // "CRVA"

// The API socket, unless the environment names another. The attach socket is <api socket>.attach.
inline constexpr const char* default_socket = "/run/carve/carved.sock";
inline constexpr const char* attach_suffix = ".attach";
inline constexpr const char* socket_variable = "CARVE_SOCKET";  // The API socket's path.

enum class Guest : uint32_t { preload = 1, shim = 2 };

struct AttachRequest {
  uint32_t magic;      //  0
  uint32_t layout;     //  4  layout_version of the library.
  uint32_t size;       //  8  sizeof(AttachRequest), because later versions append fields.
  Guest guest;         // 12
  uint64_t image;      // 16  A hash of AT_RANDOM: constant within a program image, different after an exec.
  uint64_t unused[5];  // 24
};
static_assert(sizeof(AttachRequest) == 64 && offsetof(AttachRequest, unused) == 24);

enum class AttachStatus : uint32_t {
  granted = 0,       // With three descriptors: Control (read-only), Report, Heartbeat (read-only).
  not_in_slice = 1,  // The guest library enforces no limits.
  wrong_layout = 2,  // cuInit fails; the message has both versions.
  no_slot = 3,       // The slice has no slot left for this process; cuInit fails.
  try_again = 4,     // The agent is starting or stopping.
};

struct AttachReply {
  uint32_t magic;         //  0
  uint32_t layout;        //  4  layout_version of the agent.
  uint32_t size;          //  8  sizeof(AttachReply)
  AttachStatus status;    // 12
  uint32_t slot;          // 16  The index of this process in Control::processes and Charges::process.
  uint32_t generation;    // 20
  uint64_t control_size;  // 24  Bytes to map.
  uint64_t report_size;   // 32  Bytes to map.
  char message[216];      // 40  For the user; NUL-terminated.
};
static_assert(sizeof(AttachReply) == 256 && offsetof(AttachReply, message) == 40);

}  // namespace carve::shm
