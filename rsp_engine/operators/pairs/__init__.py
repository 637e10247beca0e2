"""Top-k pairs over sliding windows: the best pairs of objects of a window, under any score.

One K-skyband serves all queries that share a scoring function:

    object -> scores with the window -> K-staircase -> K-skyband -> priority search tree -> answers
    (`objects`)                         (`staircase`)   (`skyband`)  (`search_tree`, `continuous`)

With a global scoring function, only some of the pairs are scored (`threshold_algorithm`).

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012.
"""
