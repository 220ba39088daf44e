// Searches over the label rows of regions, for ensembles whose rows share few labels.
//
// The similarity of regions A and R is the mean similarity of A with the objects of R. If bounds exclude few tiles, most regions
// are small, and their histograms have nearly as many entries as their rows have labels. Then rows of labels are compared faster
// than histograms: 64 queries at a time, by sums of 16-bit integers that are upper bounds of sum_c w_c (share of c in A) for a
// chunk of the clusterings. The scores also give a floor: no region whose score is below the floor can be among the K nearest.
// So exact similarities, from histograms, are needed for few regions only. With unit weights, the sums are exact for queries of
// few objects, and fit bytes for queries of very few objects. Regions of more than 64 rows are compared as histograms, which is
// faster for such regions.
#pragma once

#include <cmath>

#include "linkage/members.h"
#include "linkage/shortlist.h"

namespace gpuens {

// Tables of regions, with a column for each of 64.
template <typename Weight>
struct RegionTables {
    Histograms of;
    const Weight* weights;
    Vector<const i64> offsets;
    const Chunks& chunks;

    // Write the column of region a, of some clusterings and before all zeros: for each cluster, the score of an object in it,
    // in `units` of all objects together, rounded up.
    template <typename Unit>
    void lay(i64 a, f64 units, Chunk part, Unit* column) const {
        i64 last = of.start[a] + of.length[a], m = part.begin;
        i64 e = first_from(of.clusters, of.start[a], last, (i32)offsets[part.begin]);
        f64 per_object = units / (f64)of.size[a];
        for (; e < last && of.clusters[e] < offsets[part.end]; ++e) {
            i64 cluster = of.clusters[e];
            while (cluster >= offsets[m + 1]) ++m;
            Weight worth = weights[cluster] * (Weight)of.counts[e];
            column[(cluster + m - part.base) * LANES] = (Unit)std::ceil((f64)worth * per_object);
        }
    }
};

// Rebuild the list of nearest regions of each query, from all active regions; return the number of comparisons. Both are in the
// order of the rows, so that adjacent regions are similar. If a list is full before, it holds active regions with current
// similarities: regions below its last one are skipped from the beginning.
i64 search_rows(Vector<const i64> queries, Vector<const i64> active, const Members& members, const RowIndex& index,
                const Regions& regions, const AnyDiagonal& diagonal, const Shortlists& lists);

}  // namespace gpuens
