// A line of the last minute. It decorates a figure that is there as text.

const svg = 'http://www.w3.org/2000/svg';
const points = 60;
const width = 120;
const height = 24;

export class Spark {
  constructor(parent) {
    this.values = [];
    this.line = document.createElementNS(svg, 'polyline');
    const picture = document.createElementNS(svg, 'svg');
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    picture.setAttribute('preserveAspectRatio', 'none');
    picture.append(this.line);
    parent.append(picture);
  }

  push(value) {
    this.values.push(Number.isFinite(value) ? value : 0);
    if (this.values.length > points) this.values.shift();
    const highest = Math.max(...this.values, 1);
    const step = width / (points - 1);
    const from = points - this.values.length;
    this.line.setAttribute('points', this.values
      .map((v, i) => `${((from + i) * step).toFixed(1)},${(height - 2 - (v / highest) * (height - 4)).toFixed(1)}`).join(' '));
  }
}
