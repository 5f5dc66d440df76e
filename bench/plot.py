"""Line charts as SVG, by hand: nothing to install, and a diff shows what changed."""

import html
import math

COLOURS = ("#2f6f8f", "#d98e04", "#7a9e3b", "#a3477f", "#555555", "#c2503d")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 190, 40, 50


def ticks(low, high, count=6):
    """Round numbers from at most `low` to at least `high`."""
    span = max(high - low, 1e-9)
    step = 10 ** math.floor(math.log10(span / count))
    step = next(step * factor for factor in (1, 2, 5, 10) if span / (step * factor) <= count)
    return [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def decades(low, high):
    return [10.0 ** i for i in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def label(value):
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:g}"


class Axis:
    """Values along one side of the picture, in pixels from `begin` to `end`."""

    def __init__(self, values, begin, end, is_log):
        positive = [value for value in values if value > 0] or [1]
        self.is_log = is_log
        self.marks = decades(min(positive), max(positive)) if is_log else ticks(0, max(positive))
        if len(self.marks) == 1:
            self.marks.append(self.marks[0] * 10 + 1)
        self.begin, self.end = begin, end

    def at(self, value):
        scale = (lambda v: math.log10(max(v, self.marks[0]))) if self.is_log else (lambda v: v)
        low, high = scale(self.marks[0]), scale(self.marks[-1])
        return self.begin + (scale(value) - low) / (high - low) * (self.end - self.begin)


def line_chart(title, x_label, y_label, series, log_y=False):
    """`series`: {name: [(x, y), ...]}; gives the SVG's text."""
    points = [point for line in series.values() for point in line]
    x = Axis([point[0] for point in points], LEFT, WIDTH - RIGHT, is_log=False)
    y = Axis([point[1] for point in points], HEIGHT - BOTTOM, TOP, is_log=log_y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             f'font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="22" font-size="14">{html.escape(title)}</text>',
             f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{html.escape(x_label)}</text>',
             f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
             f'{html.escape(y_label)}</text>']
    for value in x.marks:
        parts += [f'<line x1="{x.at(value):.1f}" x2="{x.at(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>',
                  f'<text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label(value)}</text>']
    for value in y.marks:
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}" stroke="#eee"/>',
                  f'<text x="{LEFT - 6}" y="{y.at(value) + 4:.1f}" text-anchor="end">{label(value)}</text>']
    for index, (name, line) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{x.at(px):.1f},{y.at(py):.1f}" for px, py in sorted(line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x.at(px):.1f}" cy="{y.at(py):.1f}" r="3" fill="{colour}"/>' for px, py in line]
        top = TOP + 12 + index * 18
        parts += [f'<rect x="{WIDTH - RIGHT + 12}" y="{top - 9}" width="12" height="10" fill="{colour}"/>',
                  f'<text x="{WIDTH - RIGHT + 30}" y="{top}">{html.escape(name)}</text>']
    return "\n".join(parts) + "\n</svg>\n"


def bar_chart(title, rows, unit="", spreads=None, mark=None):
    """`rows`: [(name, value)], horizontal bars from the top down. `spreads`: [(lowest, highest)], a line over each
    bar. `mark`: a value that a line through all bars shows."""
    left, width, step = 330, 420, 26
    most = max([value for _, value in rows] + [high for _, high in spreads or []]) or 1
    at = lambda value: left + value / most * width
    height = step * len(rows) + 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
             f'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="10" y="20" font-size="14">{html.escape(title)}</text>']
    for index, (name, value) in enumerate(rows):
        y = 36 + index * step
        parts += [f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{html.escape(name)}</text>',
                  f'<rect x="{left}" y="{y}" width="{value / most * width:.1f}" height="18" fill="{COLOURS[0]}"/>']
        end = value
        if spreads:
            low, high = spreads[index]
            end = max(value, high)
            parts.append(f'<line x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y + 9}" y2="{y + 9}" stroke="{COLOURS[1]}" '
                         f'stroke-width="2"/>')
        parts.append(f'<text x="{at(end) + 6:.1f}" y="{y + 13}">{label(round(value, 2))}{unit}</text>')
    if mark is not None:
        parts.append(f'<line x1="{at(mark):.1f}" x2="{at(mark):.1f}" y1="30" y2="{height - 12}" stroke="#888" '
                     f'stroke-dasharray="4 3"/>')
    return "\n".join(parts) + "\n</svg>\n"
