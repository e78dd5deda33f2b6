# SPDX-License-Identifier: GPL-2.0
# Prints golden.json: what R computes for data sets that come with it.
# Needs jsonlite, tseries, mclust, diptest and lme4.
suppressMessages({ library(tseries); library(mclust); library(lme4) })

sleep_d <- with(sleep, extra[group == 2] - extra[group == 1])
depression <- c(0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29) -
  c(1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
plants <- PlantGrowth$weight[1:10]
five <- c(0.011, 0.019, -0.004, 0.013, 0.0075)
one_sample <- function(x) {
  t <- t.test(x)
  w <- wilcox.test(x, conf.int = TRUE, exact = TRUE)
  list(x = x, mean = unname(t$estimate), low = t$conf.int[1], high = t$conf.int[2],
       p = t$p.value, hl = median(outer(x, x, "+")[upper.tri(diag(length(x)), TRUE)] / 2),
       wlow = w$conf.int[1], whigh = w$conf.int[2], level = attr(w$conf.int, "conf.level"),
       tost = max(t.test(x, mu = -log(1.05), alternative = "greater")$p.value,
                  t.test(x, mu = log(1.05), alternative = "less")$p.value))
}
mixture <- function(x) {
  exact <- emControl(tol = c(1e-12, 1e-12), itmax = c(100000, 100000))
  b <- mclustBIC(x, G = 1:3, modelNames = c("E", "V"), control = exact,
                 verbose = FALSE)
  m <- Mclust(x, G = 2, modelNames = "E", control = exact, verbose = FALSE)
  list(x = x, bic = list(E = unname(b[, "E"]), V = unname(b[, "V"])),
       two = list(means = unname(sort(m$parameters$mean)),
                  sd = unname(sqrt(m$parameters$variance$sigmasq)),
                  weights = unname(m$parameters$pro[order(m$parameters$mean)])))
}
dip <- function(x) list(x = x, dip = diptest::dip(x), p = diptest::dip.test(x)$p.value)
runs <- function(x) {
  x <- as.numeric(x)
  r <- runs.test(factor(x[x != median(x)] > median(x)))
  list(x = x, z = unname(r$statistic), p = r$p.value,
       lag1 = acf(x, plot = FALSE)$acf[2])
}
p <- c(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
       0.5719, 0.6528, 0.7590, 1.0000)
power <- function(n, delta, sd) {
  power.t.test(n = n, delta = delta, sd = sd, type = "one.sample", strict = TRUE)$power
}
dye <- split(Dyestuff$Yield, Dyestuff$Batch)
v <- as.data.frame(VarCorr(lmer(Yield ~ 1 + (1 | Batch), Dyestuff)))$vcov

cat(jsonlite::toJSON(digits = 12, auto_unbox = TRUE, pretty = FALSE, list(
  version = R.version.string,
  one_sample = list(one_sample(depression), one_sample(plants - 5), one_sample(five)),
  sleep = list(x = sleep_d, low = t.test(sleep_d)$conf.int[1], high = t.test(sleep_d)$conf.int[2],
               p = t.test(sleep_d)$p.value),
  signed_rank = dsignrank(0:15, 5) * 2^5,
  bh = list(p = p, adjusted = p.adjust(p, "BH")),
  power = list(list(n = 5, delta = 0.02, sd = 0.01, power = power(5, 0.02, 0.01)),
               list(n = 10, delta = 0.01, sd = 0.01, power = power(10, 0.01, 0.01)),
               list(n = 20, delta = 0.005, sd = 0.01, power = power(20, 0.005, 0.01))),
  dyestuff = list(boots = unname(dye), between = v[1], within = v[2]),
  mixture = list(mixture(faithful$eruptions), mixture(as.numeric(precip))),
  dip = list(dip(faithful$eruptions), dip(as.numeric(precip)), dip(as.numeric(rivers))),
  runs = list(runs(Nile), runs(LakeHuron), runs(lynx))
)), "\n")
