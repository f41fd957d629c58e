//! Charts of one family of loads: a figure against the number of clients, a series a target. The least and
//! the most of the rounds are whiskers, and what is too noisy to tell from is hollow. `plotters` draws.

use super::html::escaped;
use super::palette::{AXIS, CARD, Colour, GRID, INK, Palette};
use crate::summary::{NOISE_MAX, Row, Section, Spread};
use plotters::prelude::*;

mod axis;

use axis::{Axis, Scale};

/// A drawn chart with its words.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: &'static str,
    pub unit: &'static str,
    pub svg: String,
}

/// A figure that is worth a chart.
struct Metric {
    title: &'static str,
    unit: &'static str,
    pick: fn(&Row) -> Option<Spread>,
    /// From the report's unit to the chart's.
    factor: f64,
    digits: usize,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Lines from zero.
    Line,
    /// Lines on a logarithmic axis: tails are ten times the middle, and both should be seen.
    LogLine,
    Bar,
}

const METRICS: [Metric; 7] = [
    Metric {
        title: "Throughput",
        unit: "transactions a second, more is better",
        pick: |row| row.tps,
        factor: 1.0,
        digits: 0,
        form: Form::Line,
    },
    Metric {
        title: "Bulk",
        unit: "MB a second, more is better",
        pick: |row| row.bytes_per_second,
        factor: 1e-6,
        digits: 0,
        form: Form::Line,
    },
    Metric {
        title: "CPU per transaction",
        unit: "the target's own, µs, less is better",
        pick: |row| row.cpu_s_per_1000,
        factor: 1e3,
        digits: 1,
        form: Form::Bar,
    },
    Metric {
        title: "Latency, p50",
        unit: "ms, logarithmic, less is better",
        pick: |row| row.p50_s,
        factor: 1e3,
        digits: 3,
        form: Form::LogLine,
    },
    Metric {
        title: "Latency, p99",
        unit: "ms, logarithmic, less is better",
        pick: |row| row.p99_s,
        factor: 1e3,
        digits: 3,
        form: Form::LogLine,
    },
    Metric {
        title: "Time to connect",
        unit: "mean, ms, logarithmic, less is better",
        pick: |row| row.connect_s,
        factor: 1e3,
        digits: 3,
        form: Form::LogLine,
    },
    Metric {
        title: "Memory per idle client",
        unit: "bytes, less is better",
        pick: |row| row.bytes_per_client,
        factor: 1.0,
        digits: 0,
        form: Form::Bar,
    },
];

/// A target's figures by place on the x axis.
struct Series<'a> {
    target: &'a str,
    colour: Colour,
    points: Vec<Point>,
}

struct Point {
    place: usize,
    clients: usize,
    spread: Spread,
    noisy: bool,
}

/// All charts that a family of loads has figures for; its sections differ in their clients.
pub fn charts(family: &[&Section], palette: &Palette) -> Vec<Chart> {
    METRICS.iter().filter_map(|metric| chart(metric, family, palette)).collect()
}

fn chart(metric: &Metric, family: &[&Section], palette: &Palette) -> Option<Chart> {
    let series: Vec<_> = palette
        .iter()
        .map(|(target, colour)| Series { target, colour, points: points(metric, family, target) })
        .filter(|series| !series.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    // One number of clients makes no line.
    let form = if family.len() < 2 { Form::Bar } else { metric.form };
    let clients: Vec<_> = family.iter().map(|section| section.clients).collect();
    let drawing = Drawing { metric, form, series, clients };
    // Drawing into a string fails only by a fault of ours; a page without that chart still has its table.
    let svg = drawing.svg().ok()?;
    let unit = if form == Form::Bar { metric.unit_of_bars() } else { metric.unit };
    Some(Chart { title: metric.title, unit, svg })
}

impl Metric {
    /// Bars begin at zero.
    fn unit_of_bars(&self) -> &'static str {
        if self.form == Form::LogLine { "ms, less is better" } else { self.unit }
    }
}

fn points(metric: &Metric, family: &[&Section], target: &str) -> Vec<Point> {
    let point = |(place, section): (usize, &&Section)| {
        let row = section.row(target)?;
        let Spread { median, min, max } = (metric.pick)(row)?;
        let spread =
            Spread { median: median * metric.factor, min: min * metric.factor, max: max * metric.factor };
        Some(Point {
            place,
            clients: section.clients,
            spread,
            noisy: row.rounds > 1 && spread.width() > NOISE_MAX,
        })
    };
    family.iter().enumerate().filter_map(point).collect()
}

struct Drawing<'a> {
    metric: &'a Metric,
    form: Form,
    series: Vec<Series<'a>>,
    clients: Vec<usize>,
}

/// Twice the size it is shown at: plotters rounds to whole units.
const SIZE: (u32, u32) = (880, 500);
/// The size of letters; plotters writes it divided by 1.24.
const LETTERS: f64 = 26.0 * 1.24;
const LINE: u32 = 4;
const HAIR: u32 = 2;
const MARK: i32 = 9;

type Fault = DrawingAreaErrorKind<std::io::Error>;
type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

impl Drawing<'_> {
    fn svg(&self) -> Result<String, Fault> {
        let (mut svg, mut hits) = (String::new(), String::new());
        {
            let canvas = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            self.draw(&canvas, &mut hits)?;
            canvas.present()?;
        }
        // Within a page it needs no name of its language, and has the size of its place.
        let inside = svg.split_once('>').map_or("", |(_, inside)| inside);
        let inside = inside.rsplit_once("</svg>").map_or(inside, |(inside, _)| inside);
        Ok(format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{inside}{hits}</svg>",
            SIZE.0,
            SIZE.1,
            escaped(self.metric.title)
        ))
    }

    fn scale(&self) -> Scale {
        let spreads = || self.series.iter().flat_map(|series| &series.points).map(|point| point.spread);
        let max = spreads().map(|spread| spread.max).fold(0.0, f64::max);
        let min = spreads().map(|spread| spread.min).filter(|&min| min > 0.0).fold(f64::INFINITY, f64::min);
        if self.form == Form::LogLine && min < max {
            Scale::logarithmic(min, max)
        } else {
            Scale::linear(max)
        }
    }

    fn draw(&self, canvas: &Canvas<'_>, hits: &mut String) -> Result<(), Fault> {
        let scale = self.scale();
        let places = self.clients.len();
        let xs =
            Axis { range: -0.5..places as f64 - 0.5, ticks: (0..places).map(|place| place as f64).collect() };
        let ys = Axis { range: scale.range(), ticks: scale.ticks() };
        let mut plot = ChartBuilder::on(canvas)
            .margin_top(16)
            .margin_right(8)
            .x_label_area_size(54)
            .y_label_area_size(88)
            .build_cartesian_2d(xs, ys)?;
        let letters = ("sans-serif", LETTERS).into_font().color(&INK.drawn());
        let clients = |place: &f64| {
            let clients = self.clients.get(place.round().max(0.0) as usize).copied().unwrap_or(0);
            let first = place.round() == 0.0;
            let noun = if clients == 1 { " client" } else { " clients" };
            format!("{}{}", axis::grouped(clients as f64, 0), if first { noun } else { "" })
        };
        plot.configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID.drawn().stroke_width(HAIR))
            .light_line_style(TRANSPARENT)
            .axis_style(AXIS.drawn().stroke_width(HAIR))
            .label_style(letters)
            .x_label_formatter(&clients)
            .y_label_formatter(&|at| scale.label(*at))
            .draw()?;
        for number in 0..self.series.len() {
            if self.form == Form::Bar {
                self.bars(&mut plot, number, scale, hits)?;
            } else {
                self.line(&mut plot, number, scale, hits)?;
            }
        }
        Ok(())
    }

    /// Points of different targets stand a little apart, so that no whisker hides another.
    fn line(
        &self,
        plot: &mut Plot<'_, '_>,
        number: usize,
        scale: Scale,
        hits: &mut String,
    ) -> Result<(), Fault> {
        let series = &self.series[number];
        let step = (0.36 / self.series.len() as f64).min(0.05);
        let x = |point: &Point| point.place as f64 + (number as f64 - self.middle()) * step;
        let colour = series.colour.drawn();
        let at = |point: &Point| (x(point), scale.at(point.spread.median));
        plot.draw_series(LineSeries::new(series.points.iter().map(at), colour.stroke_width(LINE)))?;
        for point in &series.points {
            self.whisker(plot, x(point), point, scale, colour)?;
            let (rim, fill) = if point.noisy { (colour, CARD.drawn()) } else { (CARD.drawn(), colour) };
            plot.draw_series([Circle::new(at(point), MARK, fill.filled())])?;
            plot.draw_series([Circle::new(at(point), MARK, rim.stroke_width(HAIR + 1))])?;
            self.hit(plot.backend_coord(&at(point)), series, point, hits);
        }
        Ok(())
    }

    fn bars(
        &self,
        plot: &mut Plot<'_, '_>,
        number: usize,
        scale: Scale,
        hits: &mut String,
    ) -> Result<(), Fault> {
        let series = &self.series[number];
        let step = (0.84 / self.series.len() as f64).min(0.2);
        let colour = series.colour.drawn();
        for point in &series.points {
            let x = point.place as f64 + (number as f64 - self.middle()) * step;
            let (left, right) = (x - step * 0.44, x + step * 0.44);
            let corners = [(left, scale.at(0.0)), (right, scale.at(point.spread.median))];
            if point.noisy {
                plot.draw_series([Rectangle::new(corners, colour.mix(0.3).filled())])?;
                plot.draw_series([Rectangle::new(corners, colour.stroke_width(HAIR))])?;
            } else {
                plot.draw_series([Rectangle::new(corners, colour.filled())])?;
            }
            self.whisker(plot, x, point, scale, INK.drawn())?;
            self.hit(plot.backend_coord(&(x, scale.at(point.spread.median))), series, point, hits);
        }
        Ok(())
    }

    fn middle(&self) -> f64 {
        (self.series.len() as f64 - 1.0) / 2.0
    }

    fn whisker(
        &self,
        plot: &mut Plot<'_, '_>,
        x: f64,
        point: &Point,
        scale: Scale,
        colour: RGBColor,
    ) -> Result<(), Fault> {
        let Spread { median, min, max } = point.spread;
        if min == max {
            return Ok(());
        }
        let style = colour.stroke_width(HAIR + 1);
        let [min, median, max] = [min, median, max].map(|value| scale.at(value));
        // Its middle is a circle as wide as its ends: a mark hides it on a line, and a bar needs none.
        let ends = if self.form == Form::Bar { 1 } else { 12 };
        plot.draw_series([ErrorBar::new_vertical(x, min, median, max, style, ends)])?;
        Ok(())
    }

    /// What a pointer finds there.
    fn hit(&self, (x, y): (i32, i32), series: &Series<'_>, point: &Point, hits: &mut String) {
        let digits = self.metric.digits;
        let Spread { median, min, max } = point.spread;
        let [median, min, max] = [median, min, max].map(|value| axis::grouped(value, digits));
        let noise = if point.noisy { "\n~ rounds too far apart" } else { "" };
        let plural = if point.clients == 1 { "" } else { "s" };
        let clients = axis::grouped(point.clients as f64, 0);
        let tip = format!("{}, {clients} client{plural}\n{median}  [{min} – {max}]{noise}", series.target);
        *hits += &format!(
            "<circle class=\"hit\" cx=\"{x}\" cy=\"{y}\" r=\"22\" data-tip=\"{}\"></circle>\n",
            escaped(&tip).replace('\n', "&#10;")
        );
    }
}
