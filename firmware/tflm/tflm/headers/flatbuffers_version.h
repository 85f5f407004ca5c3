// Flatbuffers of another version than TensorFlow Lite Micro asks for: it reads nothing that differs
// between them, and compares the number only.
#ifndef FLATBUFFERS_VERSION_H
#define FLATBUFFERS_VERSION_H

#include <flatbuffers/base.h>

#undef FLATBUFFERS_VERSION_MAJOR
#undef FLATBUFFERS_VERSION_MINOR
#undef FLATBUFFERS_VERSION_REVISION
#define FLATBUFFERS_VERSION_MAJOR ASKED_MAJOR
#define FLATBUFFERS_VERSION_MINOR ASKED_MINOR
#define FLATBUFFERS_VERSION_REVISION ASKED_REVISION

#endif
