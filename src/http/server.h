// An HTTP/1.1 server over a unix socket or TCP, as small as the APIs need. A Conversation reads requests and
// writes responses; the server moves the bytes between conversations and sockets in the loop. It knows no
// API: the program that serves makes all responses.
//
// One connection moves at most 16 pieces of 64 KiB in a turn of the loop, so a large file or a fast peer does
// not delay the others. Limits: those of Conversation, and 10 s until a transport is established. Unless the
// program has other limits there are 128 connections, of which 64 may be streams.
//
// If all places are taken, one peer gives way to the next: the one that has waited longest without sending a
// whole request, or else the one that has taken longest to read its responses, beyond 2 s. If there is none,
// connections wait in the kernel's queue. A program with users of its own machine limits the places of one
// uid and keeps a quarter for root and its operators; only peers of the same uid, or of those without a
// reserve, give way then, and a connection for which there is no place is closed. So is one beyond the limit
// of its address. All requests that are not complete have 64 MiB, and so have all responses that are not
// taken; beyond it, the longest waiting peers and the slowest readers give way. A uid without a reserve whose
// requests have taken the program half of the time, and 100 ms more, rests until they have not.
#pragma once

#include <map>
#include <vector>

#include "http/caller.h"
#include "http/conversation.h"
#include "http/transport.h"
#include "os/clock.h"
#include "os/loop.h"

namespace carve::http {

inline constexpr size_t max_connections = 128;
inline constexpr size_t max_streams = 64;
inline constexpr size_t max_held_bytes = 64 << 20;  // Of incomplete requests, and of unsent responses.
inline constexpr int64_t slow_reader_ns = 2'000'000'000;
inline constexpr int64_t max_busy_ns = 100'000'000;

using Handler = std::function<Response(const Request&, const Caller&)>;
// Identifies the caller of a new connection; no value closes it.
using Identify = std::function<std::optional<Caller>(int socket)>;
// Completes what is known of an identified caller, for example by asking another program. `then` is called
// once, in the loop or before this returns, and not after the connection has dropped the returned value.
using Complete = std::function<std::shared_ptr<void>(const Caller&, std::function<void(Caller)> then)>;

class Server {
 public:
  // What the program that serves decides.
  struct Hooks {
    Handler handle;
    Refuse refuse;
    // The uid of a peer before it is identified, at little cost.
    std::function<std::optional<uint32_t>(int socket)> uid_of = os::uid_of_peer;
    Identify identify = nullptr;     // Without it, every caller is anonymous.
    Complete complete = nullptr;     // Until it has called back, no request of the connection is read.
    BodyLimit body_limit = nullptr;  // Without it, every route has max_body_bytes.
    std::function<std::unique_ptr<Transport>(os::Fd)> transport = plain_transport;
    size_t queue_bytes = max_stream_queue_bytes;  // Of one stream.
    size_t connections = max_connections;
    size_t streams = max_streams;
    size_t connections_from_address = max_connections;  // Of one origin; callers of a unix socket have none.
    // The limits of one uid without a reserve, and of one address for streams.
    size_t connections_from_uid = SIZE_MAX;
    size_t streams_from_peer = SIZE_MAX;
    // The uids that get a quarter of the places and of the streams, which no other uid gets. Without the
    // function no uid has a limit of its own.
    std::function<bool(uint32_t uid)> has_reserve = nullptr;
    size_t held_bytes = max_held_bytes;
    std::function<int64_t()> now_ns = os::monotonic_ns;
  };
  Server(os::Loop& loop, os::Fd listener, Hooks hooks);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts connections from this socket in place of the former one. Present connections stay.
  void listen_at(os::Fd listener);

  // Closes the connections that are late. The loop calls it every second.
  void tick(int64_t now_ns);

 private:
  struct Connection;
  void accept_some();
  void add(os::Fd, Caller);
  void begin(int fd, Caller);
  void listen();
  void stop_listening();
  using Chosen = std::function<bool(const Connection&)>;
  // Returns the connections that may give way, the first one first.
  std::vector<int> yielding_peers(const Chosen&) const;
  // Returns the place of a new connection: that of the returned one, which gives way, or a free one if the
  // result is -1. No value if there is none.
  std::optional<int> find_place(std::optional<uint32_t> uid) const;
  bool has_reserve(const Caller&) const;
  std::optional<Response> refuse_stream(const Caller&) const;
  // Returns the time that the uid's requests have taken beyond its share.
  int64_t& busy_ns(uint32_t uid);
  bool must_rest(const Connection&);
  void rest(int fd);
  void resume();
  void count_held(Connection&);
  void limit_held();
  bool has_too_many(const std::string& origin) const;
  Response handle(const Request&, const Caller&);
  Response refuse_heirs(const Caller&) const;
  void move_bytes(int fd);
  void wait_for(const Connection&, Transport::Until);
  void wake(Connection&);
  void close(int fd);

  os::Loop& loop_;
  os::Fd listener_;
  Hooks hooks_;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::map<std::string, size_t> from_origin_;  // Connections by the callers' origins.
  size_t held_bytes_ = 0, unsent_bytes_ = 0;   // Of all connections.
  struct Busy {
    int64_t ns = 0;
    int64_t at_ns = 0;
  };
  std::map<uint32_t, Busy> busy_;                                     // By uid, of those without a reserve.
  std::vector<int> resting_;                                          // Connections that are not read.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timers look at it.
  bool listens_ = false;
};

}  // namespace carve::http
