// An API server for tests: objects of any kind with uids and versions, lists in pages, watches with
// selections and bookmarks, writes with the conflicts of the real one, bindings of pods, reviews of tokens
// and of access, and a script of faults. It has no socket and no clock: SimulatedApiClient calls it under
// virtual time, ApiServerSocket (kube/client/testing) serves it over HTTPS.
//
// Beside what it is asked for it does nothing: no garbage collection, no admission, no defaults. Rules are
// those of the API concepts and of the registry of pods (a second binding and a wrong uid are refused, an
// annotation of a binding and the node's name are one write).
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kube/testing/selector.h"

namespace carve::kube {

// What goes wrong, once for each of `times`.
struct ApiFault {
  enum class Kind {
    status,        // The answer is `status`; nothing is done.
    lose_request,  // The connection is lost; nothing is done.
    lose_answer,   // It is done, then the connection is lost.
    hang,          // Nothing is done, no answer comes.
    error_event,   // A watch gets an event ERROR with `status` in place of its next line, and ends.
    cut_line,      // A watch gets half of its next line, and its connection is lost.
    close,         // A watch gets its next line, and ends.
    duplicate,     // A watch gets its next line twice.
    late,          // A watch gets its next line, and those behind it, at release_late().
  };
  Kind kind = Kind::status;
  std::string method = "";  // "GET", "WATCH"; empty: any.
  std::string target = "";  // A part of it; empty: any.
  unsigned status = 500;
  unsigned retry_after_seconds = 0;
  unsigned times = 1;
};

class ApiServerFake {
 public:
  using Object = nlohmann::json;

  struct Request {
    std::string method, target, body, content_type, accept;
    std::string token;  // Of Authorization; empty: none.
  };
  // The other end of a request. The caller holds it as long as its client waits.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    virtual void answer(unsigned status, const std::string& body, unsigned retry_after_seconds) = 0;
    // An answer 200 of lines: any number of bytes, then its end.
    virtual void begin() = 0;
    virtual void send(const std::string& bytes) = 0;
    virtual void end() = 0;
    virtual void lose() = 0;  // The connection.
  };
  void handle(const Request&, const std::shared_ptr<Exchange>&);

  // A change, as a referee sees it.
  struct Change {
    uint64_t version = 0;
    std::string collection;  // "/api/v1/pods"
    std::optional<Object> before, after;
  };
  std::function<void(const Change&)> on_change;

  void add_fault(ApiFault fault) { faults_.push_back(std::move(fault)); }
  void clear_faults();  // Late lines are sent.
  void release_late();
  // Forgets old changes: watches of an older version, and lists that go on, get 410.
  void compact();
  void send_bookmarks();
  void end_watches();
  size_t watches() const;  // Open ones.

  // Writes as another program would. `object` has metadata.name; a uid is made for a new one.
  void put(const std::string& collection, Object object);
  bool remove(const std::string& collection, const std::string& name_space, const std::string& name);
  const Object* find(const std::string& collection, const std::string& name_space,
                     const std::string& name) const;
  std::vector<Object> all(const std::string& collection) const;
  uint64_t version() const { return version_; }

  // Each "METHOD TARGET" that was handled, the newest 10,000.
  const std::deque<std::string>& requests() const { return requests_; }

  size_t page_limit = 500;                    // A list never has more objects in a page.
  std::string required_token;                 // Other callers get 401; empty: all are accepted.
  std::map<std::string, Object> token_users;  // TokenReview: status.user by token.
  std::function<bool(const Object& spec)> is_allowed =
      nullptr;  // SubjectAccessReview; without it, nothing is.
  std::string version_text = R"({"major":"1","minor":"36","gitVersion":"v1.36.2"})";  // Of /version.
  std::string now_text = "2026-01-01T00:00:00Z";

 private:
  using Key = std::pair<std::string, std::string>;  // Namespace, name.
  using Collection = std::map<Key, Object>;
  struct Answer {
    unsigned status = 200;
    std::string body;
  };
  struct Watch {
    std::weak_ptr<Exchange> exchange;
    std::string collection, name_space, target;
    Selector labels, fields;
    bool metadata_alone;
    bool is_late = false;
    bool is_over = false;
    std::deque<std::string> held = {};
  };
  struct Snapshot {
    std::vector<Object> items;
  };

  static Answer problem(unsigned status, const std::string& reason, const std::string& message);
  std::optional<ApiFault> take_fault(const std::string& method, const std::string& target,
                                     std::initializer_list<ApiFault::Kind> kinds);
  Answer act(const Request&, const ApiPath&);
  Answer get(const Request&, const ApiPath&);
  Answer list(const Request&, const ApiPath&);
  Answer create(const Request&, const ApiPath&);
  Answer replace(const Request&, const ApiPath&);
  Answer patch(const Request&, const ApiPath&);
  Answer remove(const Request&, const ApiPath&);
  Answer bind(const Request&, const ApiPath&);
  Answer review(const Request&, const ApiPath&) const;
  Answer store(const ApiPath&, Object changed);
  void begin_watch(const Request&, const ApiPath&, const std::shared_ptr<Exchange>&);
  void write(const std::string& collection, Object object);
  void erase(const std::string& collection, const Key&);
  void changed(Change);
  void deliver(Watch&, const Change&);
  void send_line(Watch&, const std::string& line);

  std::map<std::string, Collection> collections_;
  std::deque<Change> log_;
  std::map<std::string, Snapshot> lists_;  // By token.
  std::list<Watch> watches_;
  std::list<ApiFault> faults_;
  std::deque<std::string> requests_;
  uint64_t version_ = 1, oldest_kept_ = 1, next_uid_ = 1, next_token_ = 1;
};

}  // namespace carve::kube
