"""Top-k pairs over sliding windows: the best pairs of objects of a window, under any score.

One K-skyband serves all queries that have a scoring function in common:

    object -> scores with the window -> K-staircase -> K-skyband -> priority search tree -> answers
    (`objects`)                         (`staircase`)   (`skyband`)  (`search_tree`, `continuous`)

Where the scoring function is a global one, only some of the pairs need be scored (`threshold`).

Shen, Cheema, Lin, Zhang, Wang: Efficiently monitoring top-k pairs over sliding windows. ICDE 2012.
"""
