// An HTTP/1.1 server over a unix socket or TCP, as small as the APIs allow. A Conversation parses requests
// and formats responses; the server moves the bytes between conversations and sockets in the loop. It is
// independent of any API: the serving program provides all responses.
//
// One connection moves at most 16 pieces of 64 KiB in a turn of the loop, so a large file or a fast peer does
// not delay the others. Limits: those of Conversation, and 10 s until a transport is established. Unless the
// program sets other limits there are 128 connections, of which 64 may be streams.
//
// If all places are taken, one peer is closed to make room for the next: the one that has waited longest
// without sending a complete request, otherwise the one that has taken longest to read its responses, if more
// than 2 s. If there is no such peer, new connections wait in the kernel's queue. A program that serves users
// of its own machine limits the places of one uid and reserves a quarter for root and its operators. Then
// only peers of the same uid, or of uids without a reserve, are closed, and a connection for which there is
// no place is closed. So is a connection above the limit of its address. All incomplete requests together may
// hold 64 MiB, and so may all unread responses; above that, the longest waiting peers and the slowest readers
// are closed. If the requests of a uid without a reserve have taken more than half of the program's time plus
// 100 ms, its connections are not read until that has changed.
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
inline constexpr size_t max_held_bytes = 64 << 20;  // For incomplete requests, and for unsent responses.
inline constexpr int64_t slow_reader_ns = 2'000'000'000;
inline constexpr int64_t max_busy_ns = 100'000'000;

using Handler = std::function<Response(const Request&, const Caller&)>;
// Identifies the caller of a new connection. If it returns no value, the connection is closed.
using Identify = std::function<std::optional<Caller>(int socket)>;
// Completes an identified caller, for example by a call to another program. `then` is called once, either
// before this function returns or later on the loop, but not after the connection has dropped the returned
// value.
using Complete = std::function<std::shared_ptr<void>(const Caller&, std::function<void(Caller)> then)>;

class Server {
 public:
  // Functions and limits that the serving program provides.
  struct Hooks {
    Handler handle;
    Refuse refuse;
    // Returns the uid of a peer cheaply, before the peer is identified.
    std::function<std::optional<uint32_t>(int socket)> uid_of = os::uid_of_peer;
    Identify identify = nullptr;     // If null, every caller is anonymous.
    Complete complete = nullptr;     // No request of the connection is read before it has called back.
    BodyLimit body_limit = nullptr;  // If null, every route has max_body_bytes.
    std::function<std::unique_ptr<Transport>(os::Fd)> transport = plain_transport;
    size_t queue_bytes = max_stream_queue_bytes;  // Per stream.
    size_t connections = max_connections;
    size_t streams = max_streams;
    size_t connections_from_address = max_connections;  // Per origin; callers of a unix socket have none.
    // The limit per uid without a reserve, and the limit of streams per address.
    size_t connections_from_uid = SIZE_MAX;
    size_t streams_from_peer = SIZE_MAX;
    // Returns whether the uid may use the reserved quarter of the places and streams. If null, there is no
    // limit per uid.
    std::function<bool(uint32_t uid)> has_reserve = nullptr;
    size_t held_bytes = max_held_bytes;
    std::function<int64_t()> now_ns = os::monotonic_ns;
  };
  Server(os::Loop& loop, os::Fd listener, Hooks hooks);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts connections from this socket instead of the previous one. Existing connections are kept.
  void listen_at(os::Fd listener);

  // Closes the connections that are late. The loop calls this every second.
  void tick(int64_t now_ns);

 private:
  struct Connection;
  void accept_some();
  void add(os::Fd, Caller);
  void begin(int fd, Caller);
  void listen();
  void stop_listening();
  using Chosen = std::function<bool(const Connection&)>;
  // Returns the connections that may be closed for a new one, in order.
  std::vector<int> yielding_peers(const Chosen&) const;
  // Returns the place for a new connection: the connection to close, or -1 for a free place. Returns no value
  // if there is no place.
  std::optional<int> find_place(std::optional<uint32_t> uid) const;
  bool has_reserve(const Caller&) const;
  std::optional<Response> refuse_stream(const Caller&) const;
  // Returns by how much the uid's requests have exceeded its share of time.
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
  std::map<std::string, size_t> from_origin_;  // Number of connections, by the callers' origins.
  size_t held_bytes_ = 0, unsent_bytes_ = 0;   // Over all connections.
  struct Busy {
    int64_t ns = 0;
    int64_t at_ns = 0;
  };
  std::map<uint32_t, Busy> busy_;                                     // By uid, for uids without a reserve.
  std::vector<int> resting_;                                          // Connections that are not read.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // Expires with this object.
  bool listens_ = false;
};

}  // namespace carve::http
