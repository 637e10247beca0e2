"""Top-k over incomplete streams: the attributes of an object arrive separately.

Each of d streams has one attribute. An object is ranked by a monotone aggregate of those of its
attributes that are in the window; a missing or expired attribute counts as zero.

    oracle        keeps every observation, and aggregates each window from scratch
    sla           sorted lists, the threshold algorithm, and a materialised view of the best objects
    eaa           instances of objects, each with its current score and the best score it can reach;
                  keeps only the k-dominance set (`instances`, `dominance`)
    approximate   EAA with best scores lowered by the probability that a missing attribute will
                  still arrive (`arrival_probability`, `fm_sketch`, `ams_sketch`)

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009.
"""
