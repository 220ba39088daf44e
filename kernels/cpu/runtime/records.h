// Records that C++ and Python share, declared once: a struct begins with RECORD, which declares its fields; arguments.h reads
// them by name from any object with such attributes, and gives Python a named tuple of them.
#pragma once

#include <array>
#include <iterator>

// MACRO (a, b) MACRO (c, d) ... for OVER_FIELDS(MACRO, (a, b), (c, d), ...), of at most 40 pairs.
#define OVER_FIELDS(MACRO, ...) __VA_OPT__(EXPAND(OVER_FIELDS_ONCE(MACRO, __VA_ARGS__)))
#define OVER_FIELDS_ONCE(MACRO, first, ...) MACRO first __VA_OPT__(OVER_FIELDS_AGAIN PARENTHESES(MACRO, __VA_ARGS__))
#define OVER_FIELDS_AGAIN() OVER_FIELDS_ONCE
#define PARENTHESES ()
#define EXPAND(...) EXPAND_3(EXPAND_3(EXPAND_3(__VA_ARGS__)))
#define EXPAND_3(...) EXPAND_2(EXPAND_2(EXPAND_2(__VA_ARGS__)))
#define EXPAND_2(...) EXPAND_1(EXPAND_1(EXPAND_1(__VA_ARGS__)))
#define EXPAND_1(...) __VA_ARGS__

#define DECLARE_FIELD(Type, name) Type name;
#define FIELD_NAME(Type, name) #name,
#define FIELD_ADDRESS(Type, name) Field(&self.name),

// The fields (type, name), ... of a struct of this name; methods may follow. list_fields<Field>(self) are Field(&self.name), ...
#define RECORD(Name, ...)                                                                 \
    OVER_FIELDS(DECLARE_FIELD, __VA_ARGS__)                                               \
    static constexpr char RECORD_NAME[] = #Name;                                          \
    static constexpr const char* FIELD_NAMES[] = {OVER_FIELDS(FIELD_NAME, __VA_ARGS__)};  \
    template <typename Field, typename Self>                                              \
    static std::array<Field, std::size(FIELD_NAMES)> list_fields(Self& self) {            \
        return {OVER_FIELDS(FIELD_ADDRESS, __VA_ARGS__)};                                 \
    }                                                                                     \
    static_assert(true)  // takes a semicolon

namespace gpuens {

template <typename T>
concept Record = requires { T::FIELD_NAMES; };

}  // namespace gpuens
