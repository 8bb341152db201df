// An API server for tests: objects of any kind with uids and versions, paged lists, watches with selectors
// and bookmarks, writes that conflict as on a real server, bindings of pods, TokenReviews and
// SubjectAccessReviews, server-side apply of one manager, generations, and injected faults. It has no socket and no clock: SimulatedApiClient calls it under
// virtual time, and ApiServerSocket (kubernetes/api/client/testing) serves it over HTTPS.
//
// It has no garbage collection, no admission and no defaults. The rules are those of the API concepts and of
// the pod registry: a second binding and a wrong uid are rejected, and one write sets a binding's annotation
// and the node's name.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubernetes/api/testing/selector.h"

namespace carve::kubernetes {

// A fault that is injected `times` times.
struct ApiFault {
  enum class Kind {
    status,        // Responds with `status` and does nothing.
    lose_request,  // Loses the connection and does nothing.
    lose_answer,   // Carries out the request, then loses the connection.
    hang,          // Does nothing and never responds.
    error_event,   // A watch gets an ERROR event with `status` in place of its next line, and ends.
    cut_line,      // A watch gets half of its next line and loses its connection.
    close,         // A watch gets its next line, and ends.
    duplicate,     // A watch gets its next line twice.
    late,          // A watch gets its next line, and all later ones, at release_late().
  };
  Kind kind = Kind::status;
  std::string method = "";  // "GET", "WATCH". Empty means any.
  std::string target = "";  // A substring of the target; empty means any target.
  unsigned status = 500;
  unsigned retry_after_seconds = 0;
  unsigned times = 1;
};

class ApiServerFake {
 public:
  using Object = nlohmann::json;

  struct Request {
    std::string method, target, body, content_type, accept;
    std::string token;  // From the Authorization header; empty if absent.
  };
  // The client's side of a request. The caller holds it while its client waits.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    virtual void answer(unsigned status, const std::string& body, unsigned retry_after_seconds) = 0;
    // Begins a 200 response of lines: any number of bytes follow, then the end.
    virtual void begin() = 0;
    virtual void send(const std::string& bytes) = 0;
    virtual void end() = 0;
    virtual void lose() = 0;  // Loses the connection.
  };
  void handle(const Request&, const std::shared_ptr<Exchange>&);

  // A recorded change, for tests that check the history.
  struct Change {
    uint64_t version = 0;
    std::string collection;  // "/api/v1/pods"
    std::optional<Object> before, after;
  };
  std::function<void(const Change&)> on_change;

  void add_fault(ApiFault fault) { faults_.push_back(std::move(fault)); }
  void clear_faults();  // Also sends the late lines.
  void release_late();
  // Forgets old changes: watches from an older version and continued lists get 410.
  void compact();
  void send_bookmarks();
  void end_watches();
  size_t watches() const;  // Number of open watches.

  // Writes an object as another program would. `object` has metadata.name; a new object gets a uid.
  void put(const std::string& collection, Object object);
  bool remove(const std::string& collection, const std::string& name_space, const std::string& name);
  const Object* find(const std::string& collection, const std::string& name_space,
                     const std::string& name) const;
  std::vector<Object> all(const std::string& collection) const;
  uint64_t version() const { return version_; }

  // Returns "METHOD TARGET" of the newest 10,000 handled requests.
  const std::deque<std::string>& requests() const { return requests_; }

  size_t page_limit = 500;                    // Maximum number of objects in a page of a list.
  std::string required_token;                 // Other callers get 401; if empty, all callers are accepted.
  std::map<std::string, Object> token_users;  // status.user of a TokenReview, by token.
  // The only audience of a token. Tokens that are not listed are for the API server.
  std::map<std::string, std::string> token_audiences;
  std::function<bool(const Object& spec)> is_allowed =
      nullptr;  // Decides a SubjectAccessReview; if null, nothing is allowed.
  std::string version_text = R"({"major":"1","minor":"36","gitVersion":"v1.36.2"})";  // For GET /version.
  std::set<std::string>
      groups;  // "/apis/GROUP/VERSION": those that discovery finds. Their objects are always served.
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
  Answer apply(const Request&, const ApiPath&);
  Answer remove(const Request&, const ApiPath&);
  Answer bind(const Request&, const ApiPath&);
  Answer review(const Request&, const ApiPath&) const;
  Answer issue_token(const Request&, const ApiPath&);
  Answer store(const ApiPath&, Object changed);
  void begin_watch(const Request&, const ApiPath&, const std::shared_ptr<Exchange>&);
  void write(const std::string& collection, Object object);
  void erase(const std::string& collection, const Key&);
  void changed(Change);
  void deliver(Watch&, const Change&);
  void send_line(Watch&, const std::string& line);

  std::map<std::string, Collection> collections_;
  std::deque<Change> log_;
  std::map<std::string, Snapshot> lists_;  // By continue token.
  std::list<Watch> watches_;
  std::list<ApiFault> faults_;
  std::deque<std::string> requests_;
  uint64_t version_ = 1, oldest_kept_ = 1, next_uid_ = 1, next_token_ = 1;
};

}  // namespace carve::kubernetes
