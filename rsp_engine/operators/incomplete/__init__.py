"""Top-k over streams that do not wait for each other: the attributes of an object come separately.

Each of d streams has one attribute. An object is ranked by a monotone aggregate of those of its
attributes that a window holds; what is missing, or has expired, counts as zero.

    oracle        every observation is kept, and each window is added up anew
    sla           sorted lists, the threshold algorithm, and a view of the best
    eaa           instances of objects, each with the score that it has and the best it can reach;
                  only the k-dominance set is kept (`instances`, `dominance`)
    approximate   the same, with best scores lowered by the probability that an attribute will still
                  come (`chances`, `fm_sketch`, `ams_sketch`)

Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009.
"""
