// What is supposed while a question is answered: pods that are gone, and pods that are placed. The destructor
// takes it back, so that the books have not changed.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/books/books.h"

namespace carve::cluster {

class Books::Supposition {
 public:
  explicit Supposition(Books& books) : books_(books) {}
  Supposition(const Supposition&) = delete;
  Supposition& operator=(const Supposition&) = delete;
  ~Supposition() {
    for (auto back = taken_back_.rbegin(); back != taken_back_.rend(); ++back) (*back)();
  }

  // The pod's slices are gone.
  void remove(PodBook& pod) {
    taken_back_.emplace_back([this, &pod, slices = *pod.slices, is_reserved = pod.is_reserved] {
      books_.book(pod, slices);
      pod.is_reserved = is_reserved;
    });
    books_.unbook(pod);
  }
  // The pod, which has no slices, has these.
  void place(PodBook& pod, kube::PodSlices slices) {
    books_.book(pod, std::move(slices));
    taken_back_.emplace_back([this, &pod] { books_.unbook(pod); });
  }

 private:
  Books& books_;
  std::vector<std::function<void()>> taken_back_;
};

}  // namespace carve::cluster
