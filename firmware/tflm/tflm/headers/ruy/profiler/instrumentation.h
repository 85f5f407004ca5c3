// All that the kernels take of the library ruy: a scope with a label, for profilers. Nobody profiles.
#ifndef RUY_PROFILER_INSTRUMENTATION_H
#define RUY_PROFILER_INSTRUMENTATION_H

namespace ruy {
namespace profiler {

struct ScopeLabel {
    template <typename... Labels>
    explicit ScopeLabel(Labels...) {}
    ~ScopeLabel() {}
};

}  // namespace profiler
}  // namespace ruy

#endif
