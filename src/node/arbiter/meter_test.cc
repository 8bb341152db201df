#include "node/arbiter/arbiter.h"
