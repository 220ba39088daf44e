"""What the LWEC paper printed: Tables II, III, IV, V and VII of "Locally Weighted Ensemble Clustering".

Huang, Wang, Lai, IEEE Transactions on Cybernetics 48 (2018), transcribed from a text version in which many cells of
Tables V and VII are lost. `None` is a cell (or a standard deviation) that cannot be read there, never a guess:

- Table V: most best-k cells, and of the true-k column FCT (EAC, HBGF), IS (EAC, HBGF), MF (LWEA, EAC, HBGF), MNIST
  (LWGP, EAC, HBGF), SPF (LWEA, LWGP, EAC) and Texture (all four).
- Table VII: scattered best-k cells, and of the true-k column IS, MNIST and Texture (EAC, HBGF). Where two cells ran
  into one (best-k and true-k of Caltech20, LS and Semeion) the text repeats the first standard deviation for the
  second; the true-k one is given only where it is also printed beside them.

Tables V and VII are over 100 draws of M = 10 clusterings from a pool of 100, θ = 0.4, and Tables III and IV over 20.
Table V's NMI is normalised by max(H, H') although the paper's equation 27 prints the geometric mean. Tables III and
IV do not say how many clusters were asked for; at θ = 0.4 they agree with the best-k columns of Table V to .007, and
lie well above its true-k columns, so they are best-k figures.
"""

Cell = tuple[float, float | None] | None  # mean, standard deviation

THETAS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0)

# data set: objects, attributes, classes
TABLE_II: dict[str, tuple[int, int, int]] = {
    "Caltech20": (2386, 30000, 20),
    "FCT": (3780, 54, 7),
    "IS": (2310, 19, 7),
    "ISOLET": (7797, 617, 26),
    "LR": (20000, 16, 26),
    "LS": (6435, 36, 6),
    "MF": (2000, 649, 10),
    "MNIST": (5000, 784, 10),
    "ODR": (5620, 64, 10),
    "PD": (10992, 16, 10),
    "Semeion": (1593, 256, 10),
    "SPF": (1941, 27, 7),
    "Texture": (5500, 40, 11),
    "VS": (846, 18, 4),
    "USPS": (11000, 256, 10),
}


def _curves(text: str) -> dict[str, dict[float, float]]:
    """Read "name value value …" lines into {data set: {θ: NMI}}."""
    rows = [line.split() for line in text.split("\n") if line.strip()]
    return {name: dict(zip(THETAS, map(float, values), strict=True)) for name, *values in rows}


def _cells(text: str) -> dict[str, dict[str, Cell]]:
    """Read blocks of "Method set set …" and "method cell cell …" lines into {method: {data set: cell}}.

    A cell is mean±std, mean±? where only the mean can be read, or ? where nothing can.
    """
    table: dict[str, dict[str, Cell]] = {}
    for line in text.split("\n"):
        first, *rest = line.split() or [""]
        if first == "Method":
            names = rest
        elif first:
            table.setdefault(first, {}).update(zip(names, map(_cell, rest), strict=True))
    return table


def _cell(text: str) -> Cell:
    if text == "?":
        return None
    mean, std = text.split("±")
    return float(mean), None if std == "?" else float(std)


# NMI of LWEA over θ
TABLE_III = _curves("""
Caltech20  .416 .473 .477 .472 .467 .465 .460 .458
FCT        .230 .244 .243 .243 .238 .237 .232 .229
IS         .676 .670 .640 .626 .621 .619 .615 .615
ISOLET     .624 .753 .754 .751 .749 .748 .747 .747
LR         .108 .441 .449 .445 .442 .441 .438 .437
LS         .574 .605 .632 .628 .623 .621 .608 .604
MF         .667 .686 .681 .670 .668 .663 .655 .647
MNIST      .461 .636 .655 .649 .638 .635 .615 .608
ODR        .795 .839 .835 .835 .835 .830 .825 .817
PD         .781 .801 .794 .784 .778 .775 .762 .756
Semeion    .549 .651 .663 .658 .658 .657 .650 .645
SPF        .169 .170 .163 .160 .155 .153 .152 .152
Texture    .767 .796 .784 .769 .759 .753 .738 .729
VS         .156 .157 .160 .162 .164 .162 .162 .160
USPS       .534 .659 .660 .641 .628 .625 .602 .597
""")

# NMI of LWGP over θ
TABLE_IV = _curves("""
Caltech20  .415 .477 .459 .457 .458 .457 .455 .454
FCT        .239 .232 .242 .244 .243 .242 .239 .237
IS         .670 .682 .658 .652 .646 .639 .632 .628
ISOLET     .727 .750 .744 .743 .743 .742 .741 .741
LR         .327 .453 .447 .444 .444 .443 .442 .441
LS         .562 .618 .650 .647 .644 .638 .632 .626
MF         .635 .685 .696 .687 .684 .678 .671 .665
MNIST      .375 .624 .644 .645 .643 .641 .634 .625
ODR        .760 .815 .830 .834 .830 .828 .827 .823
PD         .755 .800 .789 .784 .782 .779 .770 .765
Semeion    .465 .638 .656 .655 .655 .658 .649 .644
SPF        .163 .176 .167 .160 .157 .156 .154 .153
Texture    .711 .760 .762 .752 .747 .745 .732 .728
VS         .158 .161 .171 .171 .169 .169 .168 .166
USPS       .526 .598 .649 .642 .639 .634 .618 .607
""")

# NMI (normalised by max), as many clusters as classes
TABLE_V_TRUE_K = _cells("""
Method  Caltech20  FCT        IS         ISOLET     LR
LWEA    .452±.011  .231±.024  .621±.026  .745±.011  .416±.017
LWGP    .430±.014  .200±.031  .629±.029  .743±.010  .411±.013
EAC     .434±.013  ?          ?          .730±.021  .365±.021
HBGF    .416±.010  ?          ?          .742±.008  .385±.013

Method  LS         MF         MNIST      ODR        PD
LWEA    .616±.027  ?          .646±.022  .829±.018  .769±.022
LWGP    .644±.019  .682±.026  ?          .816±.015  .774±.021
EAC     .559±.086  ?          ?          .781±.035  .697±.036
HBGF    .618±.035  ?          ?          .810±.018  .730±.024

Method  Semeion    SPF        Texture    VS         USPS
LWEA    .655±.017  ?          ?          .133±.010  .633±.032
LWGP    .642±.024  ?          ?          .132±.012  .614±.020
EAC     .616±.033  ?          ?          .129±.014  .555±.047
HBGF    .621±.026  .129±.018  ?          .127±.012  .581±.031
""")

# NMI (normalised by max), the number of clusters that scores best
TABLE_V_BEST_K = _cells("""
Method  Caltech20  FCT        IS         ISOLET     LR
LWEA    .478±.011  .247±.014  .647±.026  .756±.008  .446±.011
LWGP    .463±.013  .244±.009  .664±.024  .749±.007  .448±.008
EAC     ?          .229±.014  .620±.021  ?          ?
HBGF    ?          .233±.008  .627±.023  ?          ?

Method  LS         MF         MNIST      ODR        PD
LWEA    ?          .679±.019  .655±.020  ?          .793±.015
LWGP    ?          .695±.019  .646±.015  ?          ?
EAC     ?          .632±.028  .611±.026  ?          ?
HBGF    ?          .658±.026  .618±.029  ?          ?

Method  Semeion    SPF        Texture    VS         USPS
LWEA    ?          .167±.017  .784±.023  ?          ?
LWGP    ?          .169±.014  .757±.021  ?          ?
EAC     ?          .153±.013  .717±.027  ?          ?
HBGF    ?          ?          .719±.023  ?          ?
""")

# ARI, as many clusters as classes
TABLE_VII_TRUE_K = _cells("""
Method  Caltech20  FCT        IS         ISOLET     LR
LWEA    .352±?     .129±.019  .522±.031  .555±.021  .200±.016
LWGP    .267±.032  .117±.026  .529±.039  .518±.024  .162±.013
EAC     .308±?     .122±.020  ?          .516±.030  .134±.017
HBGF    .235±?     .097±.018  ?          .511±.020  .138±.010

Method  LS         MF         MNIST      ODR        PD
LWEA    .568±.054  .525±.030  .550±.037  .782±.032  .675±.029
LWGP    .580±.032  .562±.035  .512±.026  .763±.026  .675±.040
EAC     .486±.115  .455±.037  ?          .698±.058  .566±.052
HBGF    .540±?     .505±.036  ?          .751±.033  .621±.039

Method  Semeion    SPF        Texture    VS         USPS
LWEA    .539±.024  .084±.026  .689±.046  .116±.014  .512±.049
LWGP    .520±.035  .083±.020  .620±.043  .097±.021  .461±.028
EAC     .478±.044  .058±.016  ?          .099±.024  .396±.064
HBGF    .491±?     .064±.013  ?          .099±.021  .425±.044
""")

# ARI, the number of clusters that scores best
TABLE_VII_BEST_K = _cells("""
Method  Caltech20  FCT        IS         ISOLET     LR
LWEA    .448±.037  ?          .586±.027  .572±.017  .223±.013
LWGP    .399±.035  .152±.012  .573±.031  .536±.017  .188±.007
EAC     .390±.037  ?          .550±.029  ?          ?
HBGF    .360±.025  ?          .550±.029  ?          ?

Method  LS         MF         MNIST      ODR        PD
LWEA    .614±.037  .572±.026  .572±.032  .836±.017  .747±.017
LWGP    .598±.013  .591±.021  .540±.022  .823±.019  .739±.019
EAC     .571±.073  .526±.022  .526±.022  ?          .686±.031
HBGF    .586±.046  ?          .498±.032  ?          ?

Method  Semeion    SPF        Texture    VS         USPS
LWEA    .548±.022  .097±.020  .712±.028  .126±.012  .559±.046
LWGP    .541±.022  .098±.013  .656±.032  .121±.011  ?
EAC     .501±.030  .078±.013  .628±.034  ?          ?
HBGF    .511±.028  ?          .601±.034  ?          ?
""")
