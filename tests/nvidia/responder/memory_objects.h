// Creation of objects with memory.
#pragma once

#include <cstddef>

#include "objects.h"

namespace responder {

// Give an object the memory that the parameters of NV_ESC_RM_ALLOC request.
Status make_object_memory(Object& object, void* params, Place place);
Status make_object_foreign(Object& object, void* params);

// Answer NV_ESC_RM_ALLOC_MEMORY and NV_ESC_RM_VID_HEAP_CONTROL. They return 0 or a negative errno.
int answer_alloc_memory(void* argument, size_t size);
int answer_heap(void* argument, size_t size);

}  // namespace responder
