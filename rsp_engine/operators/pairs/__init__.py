"""Top-k pairs over sliding windows: the best pairs of objects of a window, under any score.

One K-skyband serves all queries that share a scoring function:

    object -> scores with the window -> K-staircase -> K-skyband -> answers
    (`objects`)                         (`staircase`)   (`skyband`)

With a global scoring function, only some of the pairs are scored (`threshold_algorithm`).

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012.
"""
