// Label rows in tiles of 64, in an order in which similar rows are adjacent.
#pragma once

#include <variant>

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

constexpr i64 TILE_ROWS = 64;  // rows in a tile

// Label rows in tiles. A missing label is one more cluster of each clustering, of weight 0: N_c counts these, too. 64
// adjacent tiles form a segment, and 64 adjacent segments a group.
//
// Weights are i64 ones, whose scores are exact, or f64. Units are whole numbers: weights rounded up, `scale` of them
// for a weight of 1, so that their sums fit the type; ones are not rounded.
template <typename Code, typename Unit>
struct Tiled {
    RECORD(Tiled,
           (Matrix<Code>, rows),         // (G, M): the labels of each row
           // (tiles M, TILE_ROWS): for each tile and clustering, the labels of the tile's rows
           (Matrix<Code>, labels),
           // (segments N_c, SEGMENT): units of each cluster in each tile; 0 if no row has it
           (Matrix<Unit>, in_tiles),
           (Matrix<Unit>, in_segments),  // (groups N_c, SEGMENT): units of each cluster in each segment
           (Vector<const Unit>, units),  // (N_c,): of each cluster
           (Numbers<Vector>, weights),   // (N_c,): of each cluster
           (Vector<const i64>, starts),  // (M + 1,): the first cluster of each clustering
           (Vector<const i64>, chunks),  // first clusterings of parts of a table that fit a cache, and the end
           (Vector<const i64>, order),   // (G,): the id of the row at each place of the tiles
           (Vector<const i64>, sizes),   // (G,): the objects of the row at each place
           (f64, scale));

    bool exact() const { return std::holds_alternative<Vector<const i64>>(weights); }
    i64 n_rows() const { return rows.rows; }
    i64 n_clusterings() const { return rows.columns; }
    i64 n_clusters() const { return units.size; }
    i64 n_tiles() const { return labels.rows / n_clusterings(); }
    i64 n_segments() const { return in_tiles.rows / n_clusters(); }
    i64 n_groups() const { return in_segments.rows / n_clusters(); }
};

using AnyTiled = std::variant<Tiled<u8, u8>, Tiled<u8, u16>, Tiled<u8, u32>, Tiled<u16, u8>, Tiled<u16, u16>,
                              Tiled<u16, u32>, Tiled<u32, u8>, Tiled<u32, u16>, Tiled<u32, u32>>;

}  // namespace gpuens
