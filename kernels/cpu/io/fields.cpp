// The number of fields of each row of a text table (gpuens/io/layout.py), counted as pandas' parser does.
#include "io/primitives.h"
#include "runtime/parallel.h"

#include <algorithm>

namespace gpuens {

namespace {

constexpr i64 NUL = -1, UNPAIRED = -2;  // numbers of fields of a row with a NUL byte, or a quotation that never ends
constexpr i64 BETWEEN_LOOKS = 65'536;   // bytes

// Position of the reader: at the start of a field, within it, within its quotes, behind its quotes.
enum class At { START, FIELD, QUOTES, AFTER_QUOTE };

struct Reader {
    u8 separator;
    i64 n_expected, n_fields_later;
    At at = At::START;
    i64 line = 1, begun = 1, fields = 1, rows = 0;  // begun: the line in which the row began

    // Take a byte, and whether a line ends with it; return whether the row that it ends has the expected fields.
    bool take(u8 byte, bool ends) {
        line += ends;
        if (at == At::QUOTES) {
            if (byte == '"') at = At::AFTER_QUOTE;
        } else if (ends) {
            if (fields != n_expected) return false;
            at = At::START, begun = line, fields = 1, ++rows, n_expected = n_fields_later;
        } else if (byte == separator) {
            at = At::START, ++fields;
        } else if (byte == '"' && at != At::FIELD) {
            at = At::QUOTES;
        } else if (byte != '\r' && !(byte == ' ' && at == At::START)) {
            at = At::FIELD;
        }
        return true;
    }
};

}  // namespace

std::tuple<i64, i64, i64> find_irregular_row(Vector<const u8> text, u8 separator, i64 n_first, i64 n_fields) {
    Reader reader{separator, n_first, n_fields};
    i64 n = text.size;
    for (i64 start = 0; start < n; start += BETWEEN_LOOKS) {
        look();
        Reader copy = reader;  // in registers
        for (i64 i = start; i < std::min(n, start + BETWEEN_LOOKS); ++i) {
            u8 byte = text[i];
            if (byte == 0) return {copy.line, NUL, copy.rows};
            bool ends = byte == '\n' || (byte == '\r' && (i + 1 == n || text[i + 1] != '\n'));
            if (!copy.take(byte, ends)) return {copy.begun, copy.fields, copy.rows};
        }
        reader = copy;
    }
    if (reader.at == At::QUOTES) return {reader.begun, UNPAIRED, reader.rows};
    if (n && text[n - 1] != '\n' && text[n - 1] != '\r') {  // the last line has no newline at its end
        if (reader.fields != reader.n_expected) return {reader.begun, reader.fields, reader.rows};
        ++reader.rows;
    }
    return {0, 0, reader.rows};
}

}  // namespace gpuens
