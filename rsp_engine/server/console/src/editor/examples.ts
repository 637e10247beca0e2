// Queries to start from, one of each kind.

export interface Example { title: string; text: string }

const PREFIX = "PREFIX : <http://example.org/>\n";

export const EXAMPLES: Example[] = [
  {
    title: "The largest values of a window",
    text: `${PREFIX}REGISTER RSTREAM :warmest AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 5s]
WHERE { WINDOW :w { ?room :temperature ?t } }
ORDER BY DESC(?t) LIMIT 5
`,
  },
  {
    title: "A stream joined with remote data, under a budget",
    text: `${PREFIX}REGISTER RSTREAM :atRisk AS
SELECT ?machine ?vibration ?days (?vibration / 12.0 + ?days / 365.0 AS ?risk)
FROM NAMED WINDOW :now ON :vibrations [RANGE 10s STEP 5s]
WHERE {
  WINDOW :now { ?machine :vibration ?vibration }
  SERVICE :erp { ?machine :daysAgo ?days }
}
ORDER BY DESC(?risk) LIMIT 5
`,
  },
  {
    title: "Counts per key, ranked",
    text: `PREFIX schema: <https://schema.org/>
${PREFIX}REGISTER RSTREAM :mostMentioned AS
SELECT ?user (COUNT(?post) AS ?mentions)
FROM NAMED WINDOW :recent ON :posts [RANGE 1m STEP 10s]
WHERE { WINDOW :recent { ?post schema:mentions ?user } }
GROUP BY ?user
ORDER BY DESC(?mentions) LIMIT 10
`,
  },
  {
    title: "A stream made from a stream",
    text: `${PREFIX}REGISTER RSTREAM :hot AS
CONSTRUCT { ?room :isHot ?t }
FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t . FILTER (?t > 30) } }
`,
  },
  {
    title: "What is new in each window",
    text: `${PREFIX}REGISTER ISTREAM :alarms AS
SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE 1m STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t . FILTER (?t > 40) } }
`,
  },
];
