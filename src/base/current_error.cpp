// See current_error.hpp.
#include "base/current_error.hpp"

#include <exception>
#include <new>
#include <utility>

namespace penstock {

ErrorInfo info_of_current_exception(std::string operation) {
    ErrorInfo info;
    info.code = ErrorCode::internal;
    info.operation = std::move(operation);
    try {
        throw;
    } catch (const Error& error) {
        info = error.info();
    } catch (const std::bad_alloc&) {
        info.code = ErrorCode::out_of_memory;
        info.cause = "the process has no memory left";
    } catch (const std::exception& error) {
        info.cause = error.what();
    } catch (...) {
        info.cause = "something that is no exception was thrown";
    }
    return info;
}

}  // namespace penstock
