#include "node/loop/runtime_files.h"

#include <utility>

#include "node/cdi/cdi.h"
#include "node/slots/slot_sockets.h"
#include "os/log.h"

namespace carve::node {

void RuntimeFiles::report_trouble(const std::string& message) {
  if (!message.empty() && message != trouble_) os::log::error("{}", message);
  trouble_ = message;
}

void RuntimeFiles::check() {
  std::string trouble;
  const auto restored = node_.pages.restore(node_.loop, node_.slices);
  if (!restored) trouble = restored.error().message;
  if (restored && *restored) {
    node_.books.rewrite_mark();
    node_.event(
        "", fmt::format("the directory {} was removed and has been recreated, with the files of {} slices",
                        node_.pages.runtime().path(), node_.slices.size()));
  }
  const std::string& socket = node_.settings.socket;
  if (restored && !is_attach_socket_published(socket)) {
    if (const auto published = publish_attach_socket(socket); !published)
      trouble = published.error().message;
    else
      node_.event("", "the attach socket of containers was removed and has been recreated");
  }
  for (const auto& [id, slice] : node_.slices) {
    const auto point = slice->attach_point();
    if (!restored || !point || slice->stopping || has_attach_socket(socket, *point)) continue;
    if (const auto opened = open_attach_point(node_, *slice); !opened)
      trouble = opened.error().message;
    else
      node_.event(slice->name(), "the attach socket of its containers was removed and has been recreated");
  }
  report_trouble(trouble);
}

}  // namespace carve::node
