// Creation and end of objects: NV_ESC_RM_ALLOC, NV_ESC_RM_DUP_OBJECT and NV_ESC_RM_FREE. Each function
// answers the ioctl in the caller's structure of `size` bytes and returns 0 or a negative errno.
#pragma once

#include <cstddef>

namespace responder {

int answer_alloc(void* argument, size_t size);
int answer_dup(void* argument, size_t size);
int answer_free(void* argument, size_t size);

}  // namespace responder
